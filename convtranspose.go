package millrace

import "slices"

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
func (t *Tensor) ConvTranspose(kernels *Tensor, opt ConvOptions) *Tensor {
	const name = "convtranspose"
	if t.Rank() == 5 {
		return t.convTranspose3(name, kernels, opt)
	}
	if followed(t, kernels) {
		return whole(name, name, opt, func(in []*Tensor) *Tensor { return in[0].ConvTranspose(in[1], opt) }, t, kernels)
	}
	h := hold(name, &t, &kernels)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	ws, out, groups, err := t.convTransposed(kernels, opt)
	if err != nil {
		return failed(name, err, t, kernels)
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
			return nil, nil, 0, shapeErr("%v with kernels %v, padding %d and %d, output padding %d: no result", t.shape(), kernels.shape(), w.Before, w.After, extra)
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
	lone    bool
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
		a.parts, a.lone = some, true
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
	if b.around != b.t {
		done(b.around)
	}
	all := list[0]
	if len(list) > 1 {
		all = concat([]int{0}, list)
		done(list...)
	}
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
	r := all
	step := func(v *Tensor) {
		done(r)
		r = v
	}
	step(r.Reshape(shape...))
	if !slices.IsSorted(order) {
		step(r.Permute(order...))
	}
	step(r.Reshape(joined...))
	cut, pads := make([]Range, len(in)), make([]Padding, len(in))
	cutting, padding := false, false
	for i, a := range b.axes {
		if a.split() && joined[2+i] != a.out {
			cut[2+i], cutting = R(a.skip, a.skip+a.out), true
		}
		if a.lone {
			first := a.parts[0].residue
			p := Padding{Before: first, Between: a.stride - 1, After: a.out - 1 - first - (a.each-1)*a.stride}
			pads[2+i], padding = p, padding || p != (Padding{})
		}
	}
	if cutting {
		step(r.Slice(cut...))
	}
	if padding && r.Rank() == len(in) {
		step(r.padded(b.name, 0, pads))
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
func (b *backward) part(at []int) *Tensor {
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
		return FullOn(b.t.Stream(), b.t.DType(), 0, shape...)
	}
	around := b.around
	if !all {
		around = around.Slice(own...)
	}
	wide := b.kernels.Reshape(apart...)
	some := wide.Slice(places...)
	swapped := some.Permute(slices.Concat(outputs, spatial)...)
	mine := swapped.Reshape(slices.Concat([]int{rows, channels}, sizes(ws))...)
	r := conv(b.name, around, mine, ws, b.groups)
	done(wide, some, swapped, mine)
	if !all {
		done(around)
	}
	return r
}

func sizes(ws []Window) []int {
	list := make([]int, len(ws))
	for i, w := range ws {
		list[i] = w.Size
	}
	return list
}
