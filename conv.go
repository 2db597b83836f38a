package millrace

import (
	"math"
	"slices"
)

// ConvOptions are a convolution's options. The zero value means stride 1, no padding, no dilation
// and one group. Each list has one element per spatial dimension, or is empty.
type ConvOptions struct {
	Stride   []int
	Dilation []int
	Padding  [][2]int // zeros added before and after
	Groups   int
	// OutputPadding adds elements at the end of a transposed convolution's result. For other
	// convolutions it is ErrShape.
	OutputPadding []int
}

// reach returns the distance from the first element of a window to its last; false if no int can
// hold it.
func (w Window) reach() (int, bool) {
	if w.Size > 1 && w.Dilation > math.MaxInt/(w.Size-1) {
		return 0, false
	}
	return (w.Size - 1) * w.Dilation, true
}

// Conv convolves t with kernels, as PyTorch's conv1d, conv2d and conv3d do; like those it is a
// correlation. t has shape (batch, channels, spatial…), with one to three spatial dimensions, and
// kernels has shape (outputs, channels/groups, size…). The result has shape (batch, outputs,
// positions…). Both operands have one dtype of numbers, which is the result's too (else
// ErrDType). Shapes that do not fit, options of the wrong length, kernels larger than the padded
// input, and groups that do not divide channels and outputs are ErrShape.
//
// Conv is a contraction over windows. It never copies the windows into memory, and ops on its
// result fuse with it as with [Tensor.MatMul]. The bits of an image's result do not depend on its
// batch.
func (t *Tensor) Conv(kernels *Tensor, opt ConvOptions) *Tensor {
	const name = "conv"
	if t.Rank() == 5 {
		return t.conv3(name, kernels, opt)
	}
	if followed(t, kernels) {
		return whole(name, name, opt, func(in []*Tensor) *Tensor { return in[0].Conv(in[1], opt) }, t, kernels)
	}
	h := hold(name, &t, &kernels)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	ws, groups, err := t.convWindows(kernels, opt, 1, 3)
	if err != nil {
		return failed(name, err, t, kernels)
	}
	return conv(name, t, kernels, ws, groups)
}

// conv3 computes a convolution along three dimensions as one along the last two. It takes each
// window along the first dimension as an image of the batch, and the places in the window as
// channels. Gradients are those of these steps.
func (t *Tensor) conv3(name string, kernels *Tensor, opt ConvOptions) *Tensor {
	h := hold(name, &t, &kernels)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	ws, groups, err := t.convWindows(kernels, opt, 1, 3)
	if err != nil {
		return failed(name, err, t, kernels)
	}
	x, k := t.shape(), kernels.shape()
	win := t.Windows(2, ws[0], 0)
	depth := win.Dim(2)
	order := win.Permute(0, 2, 1, 3, 4, 5)
	images := order.Reshape(x[0]*depth, x[1]*k[2], x[3], x[4])
	flat := kernels.Reshape(k[0], k[1]*k[2], k[3], k[4])
	plane := ConvOptions{Groups: groups}
	for _, w := range ws[1:] {
		plane.Stride = append(plane.Stride, w.Stride)
		plane.Dilation = append(plane.Dilation, w.Dilation)
		plane.Padding = append(plane.Padding, [2]int{w.Before, w.After})
	}
	y := images.Conv(flat, plane)
	z := y.Reshape(x[0], depth, k[0], y.Dim(2), y.Dim(3))
	r := z.MoveAxis(2, 1)
	done(win, order, images, flat, y, z)
	return r
}

// Conv1d is [Tensor.Conv] of an x with one spatial dimension (else ErrShape): PyTorch's conv1d
// without a bias.
func Conv1d(x, kernels *Tensor, opt ConvOptions) *Tensor { return convOf("conv1d", 3, x, kernels, opt) }

// Conv2d is [Tensor.Conv] of images, with two spatial dimensions (else ErrShape): PyTorch's
// conv2d without a bias.
func Conv2d(x, kernels *Tensor, opt ConvOptions) *Tensor { return convOf("conv2d", 4, x, kernels, opt) }

// Conv3d is [Tensor.Conv] of volumes, with three spatial dimensions (else ErrShape): PyTorch's
// conv3d without a bias.
func Conv3d(x, kernels *Tensor, opt ConvOptions) *Tensor { return convOf("conv3d", 5, x, kernels, opt) }

func convOf(name string, rank int, x, kernels *Tensor, opt ConvOptions) *Tensor {
	h := hold(name, &x, &kernels)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	if x.Rank() != rank {
		return failed(name, shapeErr("%v has no %d spatial dimensions", x.shape(), rank-2), x, kernels)
	}
	return x.Conv(kernels, opt)
}

// convWindows checks the operands of a convolution and returns its windows and groups. in is the
// axis of kernels for t's channels; most is the largest number of spatial dimensions.
func (t *Tensor) convWindows(kernels *Tensor, opt ConvOptions, in, most int) ([]Window, int, error) {
	x, k := t.shape(), kernels.shape()
	groups := max(opt.Groups, 1)
	spatial := len(x) - 2
	switch {
	case spatial < 1 || spatial > most || len(k) != len(x):
		return nil, 0, shapeErr("%v with kernels %v: one to %d spatial dimensions", x, k, most)
	case t.DType() != kernels.DType():
		return nil, 0, dtypeErr("%v with kernels %v; use Cast", t.DType(), kernels.DType())
	case t.DType() == Bool:
		return nil, 0, dtypeErr("%v tensors: numbers only", t.DType())
	case opt.Groups < 0 || x[1]%groups != 0 || k[0]%groups != 0:
		return nil, 0, shapeErr("%v with kernels %v in %d groups", x, k, opt.Groups)
	case in == 1 && k[1] != x[1]/groups || in == 0 && k[0] != x[1]:
		return nil, 0, shapeErr("%v with kernels %v in %d groups: channels differ", x, k, groups)
	}
	if in == 1 && len(opt.OutputPadding) > 0 {
		return nil, 0, shapeErr("output padding %v: for transposed convolutions only", opt.OutputPadding)
	}
	for _, n := range []int{len(opt.Stride), len(opt.Dilation), len(opt.Padding), len(opt.OutputPadding)} {
		if n != 0 && n != spatial {
			return nil, 0, shapeErr("options for %d dimensions, there are %d", n, spatial)
		}
	}
	ws := make([]Window, spatial)
	for i := range ws {
		w := Window{Size: k[2+i]}
		if len(opt.Stride) > 0 {
			w.Stride = opt.Stride[i]
		}
		if len(opt.Dilation) > 0 {
			w.Dilation = opt.Dilation[i]
		}
		if len(opt.Padding) > 0 {
			w.Before, w.After = opt.Padding[i][0], opt.Padding[i][1]
		}
		w = w.withDefaults()
		n, err := w.over(x[2+i])
		if err == nil && n == 0 && in == 1 {
			err = shapeErr("kernels %v are larger than %v with %d and %d elements of padding", k, x, w.Before, w.After)
		}
		if err != nil {
			return nil, 0, err
		}
		ws[i] = w
	}
	return ws, groups, nil
}

// conv contracts windows of x with kernels. Each dimension gets a label; there are at most eight.
func conv(name string, x, kernels *Tensor, ws []Window, groups int) *Tensor {
	const batch, group, channel, output, position, place = 0, 1, 2, 3, 10, 20
	in, k := x.shape(), kernels.shape()
	axes := make([]int, len(ws))
	lx, lk := []int{batch, group, channel}, []int{group, output, channel}
	out, sum := []int{batch, group, output}, []int{channel}
	for i := range ws {
		axes[i] = 2 + i
		lx = append(lx, position+i, place+i)
		lk = append(lk, place+i)
		out = append(out, position+i)
		sum = append(sum, place+i)
	}
	win := x.windows(name, axes, ws, 0)
	w := win.shape()
	if len(w) == 0 {
		return win // carries an error
	}
	gx := win.Reshape(slices.Concat([]int{in[0], groups, in[1] / groups}, w[2:])...)
	gk := kernels.Reshape(slices.Concat([]int{groups, k[0] / groups}, k[1:])...)
	r := contract(name, gx, lx, gk, lk, out, sum)
	shape := []int{in[0], k[0]}
	for i := range ws {
		shape = append(shape, w[2+2*i])
	}
	flat := r.Reshape(shape...)
	done(win, gx, gk, r)
	return flat
}
