package millrace

// convTranspose3 computes a transposed convolution along three dimensions as several along the
// last two. Along the first dimension, it takes the results of one residue of the stride (see
// [backAxis]) as images of a batch, and the kernels' places for that residue as channels.
// Gradients are those of these steps.
func (t *Tensor) convTranspose3(name string, kernels *Tensor, opt ConvOptions) *Tensor {
	h := hold(name, &t, &kernels)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	ws, out, groups, err := t.convTransposed(kernels, opt)
	if err != nil {
		return failed(name, err, t, kernels)
	}
	plane := ConvOptions{Groups: groups}
	for _, w := range ws[1:] {
		plane.Stride = append(plane.Stride, w.Stride)
		plane.Dilation = append(plane.Dilation, w.Dilation)
		plane.Padding = append(plane.Padding, [2]int{w.Before, w.After})
	}
	if len(opt.OutputPadding) > 0 {
		plane.OutputPadding = opt.OutputPadding[1:]
	}
	// All residues get the same number of results; the last results may be beyond the end.
	a := backAxis{in: t.shape()[2], each: (out[0]-1)/ws[0].Stride + 1}
	shape := []int{t.shape()[0], a.each, groups * kernels.shape()[1], out[1], out[2]}
	var parts []*Tensor
	for _, p := range residues(ws[0], out[0]) {
		if p.count == 0 { // no place of the kernels applies here
			parts = append(parts, FullOn(t.Stream(), t.DType(), 0, shape...))
			continue
		}
		parts = append(parts, t.depthPart(kernels, plane, a.pad(p), p, shape))
	}
	all := Stack(2, parts...)
	joined := all.Reshape(shape[0], a.each*len(parts), shape[2], shape[3], shape[4])
	cut := joined.Slice(All, R(0, out[0]))
	r := cut.MoveAxis(2, 1)
	done(parts...)
	done(all, joined, cut)
	return r
}

// depthPart computes the results of one residue, in the given shape. The input's windows run
// forwards, so the kernels' places run backwards.
func (t *Tensor) depthPart(kernels *Tensor, plane ConvOptions, around Padding, p backPart, shape []int) *Tensor {
	x, k := t.shape(), kernels.shape()
	wide := t.Pad(0, around, Padding{}, Padding{})
	win := wide.Windows(2, Window{Size: p.count, Dilation: p.dilation}, 0)
	order := win.Permute(0, 2, 1, 3, 4, 5)
	images := order.Reshape(shape[0]*shape[1], x[1]*p.count, x[3], x[4])
	last := p.first + (p.count-1)*p.step
	places := kernels.Slice(All, All, R(last, End, -p.step))
	swapped := places.Permute(0, 2, 1, 3, 4)
	flat := swapped.Reshape(k[0]*p.count, k[1], k[3], k[4])
	y := images.ConvTranspose(flat, plane)
	r := y.Reshape(shape...)
	done(wide, win, order, images, places, swapped, flat, y)
	return r
}
