package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/internal/adhook"
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
func (t *Tensor) Conv(kernels *Tensor, opt ConvOptions) (r *Tensor) {
	const name = "conv"
	var rule adhook.Composite // gradients along three dimensions are those of the steps
	if t.Rank() != 5 {
		rule = adhook.Conv[ConvOptions]{Options: opt}
	}
	c := compose(name, rule, &t, &kernels)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	ws, groups, err := t.convWindows(kernels, opt, 1, 3)
	switch {
	case err != nil:
		return failed(name, err, t, kernels)
	case len(ws) == 3:
		return t.conv3(kernels, ws, groups)
	}
	return conv(name, t, kernels, ws, groups)
}

// conv3 computes a convolution along three dimensions as one along the last two. It takes each
// window along the first dimension as an image of the batch, and the places in the window as
// channels. Gradients are those of these steps.
func (t *Tensor) conv3(kernels *Tensor, ws []Window, groups int) *Tensor {
	x, k := t.shape(), kernels.shape()
	win := t.Windows(2, ws[0], 0)
	depth := win.Dim(2)
	images := win.Permute(0, 2, 1, 3, 4, 5).Reshape(x[0]*depth, x[1]*k[2], x[3], x[4])
	flat := kernels.Reshape(k[0], k[1]*k[2], k[3], k[4])
	y := images.Conv(flat, planeOf(ws, groups))
	return y.Reshape(x[0], depth, k[0], y.Dim(2), y.Dim(3)).MoveAxis(2, 1)
}

// planeOf returns the options of a convolution along the last two of three dimensions.
func planeOf(ws []Window, groups int) ConvOptions {
	plane := ConvOptions{Groups: groups}
	for _, w := range ws[1:] {
		plane.Stride = append(plane.Stride, w.Stride)
		plane.Dilation = append(plane.Dilation, w.Dilation)
		plane.Padding = append(plane.Padding, [2]int{w.Before, w.After})
	}
	return plane
}

// Conv1d is [Tensor.Conv] of an x with one spatial dimension (else ErrShape), with the same dtypes
// and errors: PyTorch's conv1d without a bias.
func Conv1d(x, kernels *Tensor, opt ConvOptions) *Tensor { return convOf("conv1d", 3, x, kernels, opt) }

// Conv2d is [Tensor.Conv] of images, with two spatial dimensions (else ErrShape), with the same
// dtypes and errors: PyTorch's conv2d without a bias.
func Conv2d(x, kernels *Tensor, opt ConvOptions) *Tensor { return convOf("conv2d", 4, x, kernels, opt) }

// Conv3d is [Tensor.Conv] of volumes, with three spatial dimensions (else ErrShape), with the same
// dtypes and errors: PyTorch's conv3d without a bias.
func Conv3d(x, kernels *Tensor, opt ConvOptions) *Tensor { return convOf("conv3d", 5, x, kernels, opt) }

func convOf(name string, rank int, x, kernels *Tensor, opt ConvOptions) (r *Tensor) {
	c := compose(name, nil, &x, &kernels)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case x.Rank() != rank:
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
		return nil, 0, shapeErr("%v and kernels %v must both have one to %d spatial dimensions", x, k, most)
	case t.DType() != kernels.DType():
		return nil, 0, dtypeErr("the input has dtype %v, the kernels have %v; use Cast", t.DType(), kernels.DType())
	case t.DType() == Bool:
		return nil, 0, dtypeErr("%v is not a number dtype", t.DType())
	case opt.Groups < 0 || x[1]%groups != 0 || k[0]%groups != 0:
		return nil, 0, shapeErr("the channels of %v and kernels %v cannot be split into %d groups", x, k, opt.Groups)
	case in == 1 && k[1] != x[1]/groups || in == 0 && k[0] != x[1]:
		return nil, 0, shapeErr("the channels of %v do not fit kernels %v in %d groups", x, k, groups)
	}
	if in == 1 && len(opt.OutputPadding) > 0 {
		return nil, 0, shapeErr("output padding %v is for transposed convolutions only", opt.OutputPadding)
	}
	for _, n := range []int{len(opt.Stride), len(opt.Dilation), len(opt.Padding), len(opt.OutputPadding)} {
		if n != 0 && n != spatial {
			return nil, 0, shapeErr("the options are for %d dimensions, there are %d", n, spatial)
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
func conv(name string, x, kernels *Tensor, ws []Window, groups int) (r *Tensor) {
	defer within(x, kernels).end(&r)
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
	shape := []int{in[0], k[0]}
	for i := range ws {
		shape = append(shape, w[2+2*i])
	}
	return contract(name, gx, lx, gk, lk, out, sum).Reshape(shape...)
}

// ConvTranspose is the transposed convolution, the gradient of [Tensor.Conv] with respect to its
// input: PyTorch's conv_transpose1d, 2d and 3d without a bias. t has shape (batch, channels,
// spatial…), with one to three spatial dimensions, and kernels has shape (channels,
// outputs/groups, size…). Stride, padding and dilation are those of the forward convolution. A
// dimension of n elements becomes one of (n-1)·stride + (size-1)·dilation + 1 elements, less the
// padding, plus the output padding. A result without elements is ErrShape, and so is an input
// dimension of 0. Dtypes and other errors are those of [Tensor.Conv].
//
// A stride costs no multiplications by zeros. Result elements that are stride apart use the same
// places of the kernels, so one convolution with only these places computes them. With three
// spatial dimensions, a copy joins these parts along the first one.
func (t *Tensor) ConvTranspose(kernels *Tensor, opt ConvOptions) (r *Tensor) {
	const name = "convtranspose"
	var rule adhook.Composite // gradients along three dimensions are those of the steps
	if t.Rank() != 5 {
		rule = adhook.ConvTranspose[ConvOptions]{Options: opt}
	}
	c := compose(name, rule, &t, &kernels)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	ws, out, groups, err := t.convTransposed(kernels, opt)
	switch {
	case err != nil:
		return failed(name, err, t, kernels)
	case len(ws) == 3:
		return t.convTranspose3(kernels, opt, ws, out, groups)
	}
	axes := make([]backAxis, len(ws))
	for i, w := range ws {
		axes[i] = backAxisOf(w, t.shape()[2+i], out[i])
	}
	b := backward{name: name, t: t, kernels: kernels, groups: groups, axes: axes}
	return b.result()
}

// convTransposed checks the operands of a transposed convolution. out has the sizes of the
// result's spatial dimensions.
func (t *Tensor) convTransposed(kernels *Tensor, opt ConvOptions) (ws []Window, out []int, groups int, err error) {
	ws, groups, err = t.convWindows(kernels, opt, 0, 3)
	if err != nil {
		return nil, nil, 0, err
	}
	for i, w := range ws {
		extra := 0
		if len(opt.OutputPadding) > 0 {
			extra = opt.OutputPadding[i]
		}
		n := t.shape()[2+i]
		reach, ok := w.reach()
		size, _, ok2 := Padding{Before: reach, After: extra, Between: w.Stride - 1}.size(n)
		if !ok || !ok2 || extra < 0 || n == 0 || size-w.Before-w.After <= 0 {
			return nil, nil, 0, shapeErr("%v with kernels %v, padding %d and %d and output padding %d gives no result", t.shape(), kernels.shape(), w.Before, w.After, extra)
		}
		out = append(out, size-w.Before-w.After)
	}
	return ws, out, groups, nil
}

// backAxis is one dimension of a transposed convolution. Element q of the result is the sum, over
// places p of the kernel, of the kernel's element at p times the input's element
// (q+before-p·dilation)/stride, if that is whole. The places depend only on q modulo the stride,
// its residue.
type backAxis struct {
	in, out int // elements of the input and of the result
	stride  int
	each    int        // result elements per residue
	parts   []backPart // one per residue, in order, or one for the only residue that has places
	single  bool
	// joint: all residues have equally many places and use the same input elements. One
	// convolution computes them as its outputs, parts has only the first residue's part, and the
	// result starts skip elements after the first one.
	joint bool
	skip  int
}

// backPart is one residue. It has count places of the kernel: first, first+step, … Result i
// multiplies the first place by input element i+shift, and each further place by an element that
// is dilation earlier.
type backPart struct {
	residue, first, step, count, shift, dilation int
}

// backAxisOf plans a dimension. w is the window of the forward convolution, whose input, the
// result here, has out elements.
func backAxisOf(w Window, in, out int) backAxis {
	a := backAxis{in: in, out: out, stride: w.Stride}
	if w.Dilation == 1 && w.Size%w.Stride == 0 && (w.Before%w.Stride == 0 || w.Stride > maxParts) {
		from := w.Before / w.Stride
		a.joint = w.Stride > 1
		a.skip = w.Before - from*w.Stride
		a.each = (a.skip+out-1)/w.Stride + 1
		a.parts = []backPart{{step: w.Stride, count: w.Size / w.Stride, shift: from, dilation: 1}}
		return a
	}
	a.each = (out-1)/w.Stride + 1
	a.parts = residues(w, out)
	some := slices.DeleteFunc(slices.Clone(a.parts), func(p backPart) bool { return p.count == 0 })
	if len(some) == 1 && (w.Stride == 1 || w.Stride > maxParts) {
		a.parts, a.single = some, true
		a.each = (out-1-some[0].residue)/w.Stride + 1
	}
	return a
}

// residues returns the part of each residue, in order.
func residues(w Window, out int) []backPart {
	common := gcd(w.Stride, w.Dilation)
	var parts []backPart
	for r := range min(w.Stride, out) {
		p := backPart{residue: r, step: w.Stride / common, dilation: w.Dilation / common}
		for p.first < min(p.step, w.Size) && (r+w.Before-p.first*w.Dilation)%w.Stride != 0 {
			p.first++
		}
		if p.first < min(p.step, w.Size) {
			p.count = (w.Size-1-p.first)/p.step + 1
			p.shift = (r + w.Before - p.first*w.Dilation) / w.Stride
		}
		parts = append(parts, p)
	}
	return parts
}

// maxParts is the largest stride for which residues that use different elements become separate
// convolutions.
const maxParts = 4

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// split reports that the residues are stored apart, so the result must interleave them.
func (a *backAxis) split() bool { return a.joint || len(a.parts) > 1 }

// pad returns the padding of the input that part p needs. It is negative if the part does not use
// all of the input.
func (a *backAxis) pad(p backPart) Padding {
	lead := (p.count-1)*p.dilation - p.shift
	return Padding{Before: lead, After: a.each + (p.count-1)*p.dilation - lead - a.in}
}

// backward computes a transposed convolution.
type backward struct {
	name       string
	t, kernels *Tensor
	groups     int
	axes       []backAxis
	pads       []Padding // of the input, enough for all parts
	around     *Tensor   // the input with these pads
}

// result computes the parts one after another, interleaves them, and writes zeros where no place
// of a kernel applies.
func (b *backward) result() *Tensor {
	in, per := b.t.shape(), b.kernels.shape()[1]
	var list []*Tensor
	p := within(b.t, b.kernels)
	b.surround()
	at := make([]int, len(b.axes))
	for more := true; more; {
		list = append(list, b.part(at))
		more = false
		for i := len(at) - 1; i >= 0 && !more; i-- {
			if at[i]++; at[i] < len(b.axes[i].parts) {
				more = true
			} else {
				at[i] = 0
			}
		}
	}
	r := concat([]int{0}, list)
	p.end(&r)
	// (residues of parts…, batch, groups, residues of outputs…, outputs, each…)
	var shape, order, joined []int
	residue := make([]int, len(b.axes))
	for i, a := range b.axes {
		if len(a.parts) > 1 {
			residue[i] = len(shape)
			shape = append(shape, len(a.parts))
		}
	}
	order, joined = append(order, len(shape), len(shape)+1), append(joined, in[0], b.groups*per)
	shape = append(shape, in[0], b.groups)
	for i, a := range b.axes {
		if a.joint {
			residue[i] = len(shape)
			shape = append(shape, a.stride)
		}
	}
	order = append(order, len(shape))
	shape = append(shape, per)
	for i, a := range b.axes {
		order = append(order, len(shape)+i)
		n := a.each
		if a.split() {
			order = append(order, residue[i])
			n *= shape[residue[i]]
		}
		joined = append(joined, n)
	}
	for _, a := range b.axes {
		shape = append(shape, a.each)
	}
	if r = r.Reshape(shape...); !slices.IsSorted(order) {
		p.end(&r)
		r = r.Permute(order...)
	}
	p.end(&r)
	r = r.Reshape(joined...)
	p.end(&r)
	cut, pads := make([]Range, len(in)), make([]Padding, len(in))
	cutting, padding := false, false
	for i, a := range b.axes {
		if a.split() && joined[2+i] != a.out {
			cut[2+i], cutting = R(a.skip, a.skip+a.out), true
		}
		if a.single {
			first := a.parts[0].residue
			q := Padding{Before: first, Between: a.stride - 1, After: a.out - 1 - first - (a.each-1)*a.stride}
			pads[2+i], padding = q, padding || q != (Padding{})
		}
	}
	if cutting {
		r = r.Slice(cut...)
		p.end(&r)
	}
	if padding && r.Rank() == len(in) {
		r = r.padded(b.name, 0, pads)
	}
	return r
}

// surround pads the input once, enough for all parts.
func (b *backward) surround() {
	b.pads, b.around = make([]Padding, len(b.axes)+2), b.t
	padding := false
	for i := range b.axes {
		a, p := &b.axes[i], &b.pads[2+i]
		first := true
		for _, part := range a.parts {
			own := a.pad(part)
			switch {
			case part.count == 0:
			case first:
				*p, first = own, false
			default:
				p.Before, p.After = max(p.Before, own.Before), max(p.After, own.After)
			}
		}
		padding = padding || *p != (Padding{})
	}
	if padding {
		b.around = b.t.padded(b.name, 0, b.pads)
	}
}

// part convolves the input with the places of the kernels for one choice of residues. If there
// are no such places, it returns zeros.
func (b *backward) part(at []int) (r *Tensor) {
	defer within(b.t, b.kernels).end(&r)
	x, k := b.t.shape(), b.kernels.shape()
	channels := x[1] / b.groups
	ws, own, all := make([]Window, len(at)), make([]Range, len(x)), true
	apart, places := []int{b.groups, channels, k[1]}, make([]Range, 3)
	outputs, spatial := []int{0}, []int{2, 1} // the dims of places that are merged into one dim of the kernels
	rows, empty := b.groups*k[1], false
	shape := []int{x[0], 0}
	for i := range at {
		a := &b.axes[i]
		p := a.parts[at[i]]
		ws[i] = Window{Size: p.count, Dilation: p.dilation}
		if mine := a.pad(p); mine != b.pads[2+i] {
			first := b.pads[2+i].Before - mine.Before
			own[2+i], all = R(first, first+a.each+(p.count-1)*p.dilation), false
		}
		empty = empty || p.count == 0
		last := p.first + (p.count-1)*p.step
		if a.joint {
			places = append(places, R(-1, End, -1), All)
			apart = append(apart, p.count, a.stride)
			outputs, spatial = append(outputs, len(apart)-1), append(spatial, len(apart)-2)
			rows *= a.stride
		} else {
			places = append(places, R(last, End, -p.step))
			apart = append(apart, k[2+i])
			spatial = append(spatial, len(apart)-1)
		}
		shape = append(shape, a.each)
	}
	shape[1] = rows
	if empty {
		return FullOn(beside(b.t), b.t.DType(), 0, shape...)
	}
	around := b.around
	if !all {
		around = around.Slice(own...)
	}
	some := b.kernels.Reshape(apart...).Slice(places...)
	mine := some.Permute(slices.Concat(outputs, spatial)...).Reshape(slices.Concat([]int{rows, channels}, sizes(ws))...)
	return conv(b.name, around, mine, ws, b.groups)
}

func sizes(ws []Window) []int {
	list := make([]int, len(ws))
	for i, w := range ws {
		list[i] = w.Size
	}
	return list
}

// convTranspose3 computes a transposed convolution along three dimensions as several along the
// last two. Along the first dimension, it takes the results of one residue of the stride (see
// [backAxis]) as images of a batch, and the kernels' places for that residue as channels.
// Gradients are those of these steps.
func (t *Tensor) convTranspose3(kernels *Tensor, opt ConvOptions, ws []Window, out []int, groups int) *Tensor {
	plane := planeOf(ws, groups)
	if len(opt.OutputPadding) > 0 {
		plane.OutputPadding = opt.OutputPadding[1:]
	}
	// All residues get the same number of results; the last results may be beyond the end.
	a := backAxis{in: t.shape()[2], each: (out[0]-1)/ws[0].Stride + 1}
	shape := []int{t.shape()[0], a.each, groups * kernels.shape()[1], out[1], out[2]}
	var parts []*Tensor
	for _, p := range residues(ws[0], out[0]) {
		if p.count == 0 { // no place of the kernels applies here
			parts = append(parts, FullOn(beside(t), t.DType(), 0, shape...))
			continue
		}
		parts = append(parts, t.depthPart(kernels, plane, a.pad(p), p, shape))
	}
	joined := Stack(2, parts...).Reshape(shape[0], a.each*len(parts), shape[2], shape[3], shape[4])
	return joined.Slice(All, R(0, out[0])).MoveAxis(2, 1)
}

// depthPart computes the results of one residue, in the given shape. The input's windows run
// forwards, so the kernels' places run backwards.
func (t *Tensor) depthPart(kernels *Tensor, plane ConvOptions, around Padding, p backPart, shape []int) (r *Tensor) {
	defer within(t).end(&r)
	x, k := t.shape(), kernels.shape()
	win := t.Pad(0, around, Padding{}, Padding{}).Windows(2, Window{Size: p.count, Dilation: p.dilation}, 0)
	images := win.Permute(0, 2, 1, 3, 4, 5).Reshape(shape[0]*shape[1], x[1]*p.count, x[3], x[4])
	last := p.first + (p.count-1)*p.step
	places := kernels.Slice(All, All, R(last, End, -p.step))
	flat := places.Permute(0, 2, 1, 3, 4).Reshape(k[0]*p.count, k[1], k[3], k[4])
	return images.ConvTranspose(flat, plane).Reshape(shape...)
}
