package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace"
)

func convBack(s *step) {
	opt := s.call.With.(millrace.ConvOptions)
	s.each(0, func() *tensor { return convInput(s, s.d, s.keptAt(1), s.kinds[0].shape, opt) })
	s.each(1, func() *tensor { return convWeight(s, s.keptAt(0), s.d, s.kinds[1].shape, opt) })
}

func convTransposeBack(s *step) {
	opt := s.call.With.(millrace.ConvOptions)
	forward := opt
	forward.OutputPadding = nil
	s.each(0, func() *tensor { return s.d.Conv(s.keptAt(1), forward) })
	s.each(1, func() *tensor { return convWeight(s, s.d, s.keptAt(0), s.kinds[1].shape, forward) })
}

// spatial is an option along dim i, or what it is where it is left out.
func spatial(list []int, i int) int {
	if len(list) == 0 || list[i] == 0 {
		return 1
	}
	return list[i]
}

func paddingOf(opt millrace.ConvOptions, i int) [2]int {
	if len(opt.Padding) == 0 {
		return [2]int{}
	}
	return opt.Padding[i]
}

// convInput is the derivative of a convolution by its input, of the shape in.
func convInput(s *step, d, kernels *tensor, in []int, opt millrace.ConvOptions) *tensor {
	back := opt
	back.OutputPadding = nil
	for i := range in[2:] {
		reach := (kernels.Dim(2+i) - 1) * spatial(opt.Dilation, i)
		p := paddingOf(opt, i)
		size := (d.Dim(2+i)-1)*spatial(opt.Stride, i) + 1 + reach - p[0] - p[1]
		back.OutputPadding = append(back.OutputPadding, in[2+i]-size)
	}
	return d.ConvTranspose(kernels, back)
}

// convWeight is the derivative of a convolution by its kernels, of the shape k: the
// convolution of the input with the result's derivative, batches and channels changed
// round, and stride and dilation, too.
func convWeight(s *step, x, d *tensor, k []int, opt millrace.ConvOptions) *tensor {
	groups := max(opt.Groups, 1)
	n, c, rank := x.Dim(0), k[1], len(k)
	swap := func(t *tensor, dims ...int) *tensor { // (n, groups, m, …) with dims in that order
		order := dims
		for i := 3; i < t.Rank(); i++ {
			order = append(order, i)
		}
		return s.do(t.Permute(order...))
	}
	apart := func(t *tensor, m int) *tensor {
		return s.do(t.Reshape(slices.Concat([]int{n, groups, m}, t.Shape()[2:])...))
	}
	xs := swap(apart(x, c), 2, 1, 0)
	xs = s.do(xs.Reshape(slices.Concat([]int{c, groups * n}, x.Shape()[2:])...))
	ds := swap(apart(d, k[0]/groups), 1, 2, 0)
	ds = s.do(ds.Reshape(slices.Concat([]int{k[0], n}, d.Shape()[2:])...))
	turned := millrace.ConvOptions{Groups: groups, Padding: opt.Padding}
	for i := range rank - 2 {
		turned.Stride = append(turned.Stride, spatial(opt.Dilation, i))
		turned.Dilation = append(turned.Dilation, spatial(opt.Stride, i))
	}
	r := s.do(xs.Conv(ds, turned)) // (c, k[0], at least k[2], …)
	ranges := []millrace.Range{millrace.All, millrace.All}
	for _, m := range k[2:] {
		ranges = append(ranges, millrace.R(0, m))
	}
	order := []int{1, 0}
	for i := 2; i < rank; i++ {
		order = append(order, i)
	}
	return s.do(r.Slice(ranges...)).Permute(order...)
}
