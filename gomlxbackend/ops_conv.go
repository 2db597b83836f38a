package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// convolution is what ConvGeneral was asked for, with a value for each spatial
// axis.
type convolution struct {
	input, kernel, back      []int // orders of axes: (batch, channels, spatial…), (outputs, channels, spatial…), and that of the result
	stride, dilation         []int
	pads                     []millrace.Padding // of all axes of the input
	channelGroups, batchSets int
	acc                      dtypes.DType
}

// spatialAxes is how many axes Tensor.Conv convolves along at once.
const spatialAxes = 2

// ConvGeneral convolves along any number of axes. It is computed in the
// operands' dtype, but for 16-bit floats, which are summed in float32 and
// rounded once.
func (f *Function) ConvGeneral(input, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int,
	inputDilations, kernelDilations []int, channelGroupCount, batchGroupCount int) (compute.Value, error) {
	const op = compute.OpTypeConvGeneral
	own(&axes.InputSpatial, &axes.KernelSpatial, &axes.OutputSpatial, &strides, &inputDilations, &kernelDilations)
	own(&paddings)
	return f.build(op, []compute.Value{input, kernel}, func(in []*Node) (*Node, error) {
		from, kern := in[0].shape, in[1].shape
		rank := from.Rank()
		for _, a := range []int{axes.InputBatch, axes.InputChannels, axes.KernelInputChannels, axes.KernelOutputChannels, axes.OutputBatch, axes.OutputChannels} {
			if a < 0 || a >= rank {
				return nil, errors.Errorf("axis %d of %d", a, rank)
			}
		}
		if from.DType != kern.DType {
			return nil, errors.New("the dtypes differ")
		}
		if in[0].isComplex() {
			return f.bilinear(op, in, func(x, y *Node) (compute.Value, error) {
				return f.ConvGeneral(x, y, axes, strides, paddings, inputDilations, kernelDilations, channelGroupCount, batchGroupCount)
			})
		}
		if !isNumber(from.DType) {
			return nil, errors.Errorf("not defined for %s", from.DType)
		}
		channelGroups, batchSets := max(channelGroupCount, 1), max(batchGroupCount, 1)
		shape, err := shapeinference.ConvGeneral(from, kern, axes, strides, paddings, inputDilations, kernelDilations, channelGroups, batchSets)
		if err != nil {
			return nil, err
		}
		if from.IsZeroSize() || kern.IsZeroSize() || shape.IsZeroSize() {
			return f.filled(op, shape, shapes.CastAsDType(0, shape.DType), in[0])
		}
		n := rank - 2
		c := &convolution{
			input:  slices.Concat([]int{axes.InputBatch, axes.InputChannels}, axes.InputSpatial),
			kernel: slices.Concat([]int{axes.KernelOutputChannels, axes.KernelInputChannels}, axes.KernelSpatial),
			back:   make([]int, rank),
			stride: oneEach(strides, n, 1), dilation: oneEach(kernelDilations, n, 1),
			pads:          make([]millrace.Padding, rank),
			channelGroups: channelGroups, batchSets: batchSets, acc: from.DType,
		}
		for i, a := range slices.Concat([]int{axes.OutputBatch, axes.OutputChannels}, axes.OutputSpatial) {
			c.back[a] = i
		}
		around, spread := oneEach(paddings, n, [2]int{}), oneEach(inputDilations, n, 1)
		for i := range n {
			c.pads[2+i] = millrace.Padding{Before: around[i][0], After: around[i][1], Between: spread[i] - 1}
		}
		if from.DType.IsHalfPrecision() {
			c.acc = dtypes.Float32
		}
		return f.add(op, shape, *c, func(r *run, in []*tensor) *tensor {
			x, k := in[0], in[1]
			if c.acc != from.DType {
				x, k = r.temp(x.Cast(dtypeRows[c.acc].dt)), r.temp(k.Cast(dtypeRows[c.acc].dt))
			}
			y := c.do(r, r.temp(x.Permute(c.input...)), r.temp(k.Permute(c.kernel...)), along(from, c.input), along(kern, c.kernel))
			if c.acc != from.DType {
				y = r.temp(y.Cast(in[0].DType()))
			}
			return y.Permute(c.back...)
		}, in...)
	})
}

// along are the dimensions in an order of axes.
func along(s shapes.Shape, order []int) []int {
	var dims []int
	for _, a := range order {
		dims = append(dims, s.Dimensions[a])
	}
	return dims
}

// do convolves (batch, channels, spatial…), of the dimensions d, with (outputs,
// channels, spatial…), of the dimensions size.
func (c *convolution) do(r *run, x, k *tensor, d, size []int) *tensor {
	groups := c.channelGroups
	if c.batchSets > 1 {
		// Sets of images are groups of channels: each has outputs of its own.
		groups = c.batchSets
		apart := r.temp(x.Reshape(slices.Concat([]int{groups, d[0] / groups}, d[1:])...))
		order := []int{1, 0}
		for i := 2; i <= len(d); i++ {
			order = append(order, i)
		}
		d = slices.Concat([]int{d[0] / groups, groups * d[1]}, d[2:])
		x = r.temp(r.temp(apart.Permute(order...)).Reshape(d...))
	}
	n := len(c.stride)
	opt := millrace.ConvOptions{Stride: c.stride, Dilation: c.dilation, Groups: groups}
	if n <= spatialAxes && !slices.ContainsFunc(c.pads, func(p millrace.Padding) bool { return p.Before < 0 || p.After < 0 || p.Between > 0 }) {
		for _, p := range c.pads[2:] {
			opt.Padding = append(opt.Padding, [2]int{p.Before, p.After})
		}
		return r.temp(x.Conv(k, opt))
	}
	x = r.temp(x.Pad(0, c.pads...))
	if n <= spatialAxes {
		return r.temp(x.Conv(k, opt))
	}
	for i, p := range c.pads {
		d[i] = p.Before + d[i] + (d[i]-1)*p.Between + p.After
	}
	return c.sum(r, x, k, opt, d, size)
}

// sum is a convolution along more axes: for each element of the kernel along the
// first ones, the images that it meets are convolved along the last ones, with
// their places as images of a batch. The results are added.
func (c *convolution) sum(r *run, x, k *tensor, opt millrace.ConvOptions, d, size []int) *tensor {
	more := len(c.stride) - spatialAxes
	opt.Stride, opt.Dilation = c.stride[more:], c.dilation[more:]
	places := make([]int, len(c.stride)) // there are along each axis
	for i := range places {
		places[i] = windowsIn(d[2+i], millrace.Window{Size: size[2+i], Stride: c.stride[i], Dilation: c.dilation[i]})
	}
	images := d[0] // with their places along the first axes
	for _, n := range places[:more] {
		images *= n
	}
	// (batch, places…, channels, the last axes)
	order := []int{0}
	for i := range more {
		order = append(order, 2+i)
	}
	order = append(order, 1)
	for i := range spatialAxes {
		order = append(order, 2+more+i)
	}
	at := make([]int, more)
	var total *tensor
	for {
		fromX, fromK := []millrace.Range{millrace.All, millrace.All}, []millrace.Range{millrace.All, millrace.All}
		for i, a := range at {
			first := a * c.dilation[i]
			fromX = append(fromX, millrace.R(first, first+(places[i]-1)*c.stride[i]+1, c.stride[i]))
			fromK = append(fromK, millrace.At(a))
		}
		met := r.temp(r.temp(x.Slice(fromX...)).Permute(order...))
		flat := r.temp(met.Reshape(slices.Concat([]int{images, d[1]}, d[2+more:])...))
		part := r.temp(flat.Conv(r.temp(k.Slice(fromK...)), opt))
		if total == nil {
			total = part
		} else {
			total = r.temp(total.Add(part))
		}
		if !next(at, size[2:]) {
			break
		}
	}
	// (batch, places…, outputs, the last axes) to (batch, outputs, all axes)
	apart := r.temp(total.Reshape(slices.Concat([]int{d[0]}, places[:more], size[:1], places[more:])...))
	back := []int{0, 1 + more}
	for i := range more {
		back = append(back, 1+i)
	}
	for i := range spatialAxes {
		back = append(back, 2+more+i)
	}
	return r.temp(apart.Permute(back...))
}

// next counts through all positions, the last axis first; false behind the last.
func next(at, dims []int) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < dims[i] {
			return true
		}
		at[i] = 0
	}
	return false
}
