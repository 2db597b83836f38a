package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
)

func convBack(s *step, c adhook.Conv[millrace.ConvOptions]) {
	opt := c.Options
	if s.wants[0] && s.wants[1] {
		if around, rest := surrounded(s, opt); around != nil {
			s.each(0, func() *tensor { return convInput(s, around, s.keptAt(1), s.kinds[0].shape, rest) })
			s.each(1, func() *tensor { return convWeightBehind(s, s.keptAt(0), around, s.kinds[1].shape, opt) })
			return
		}
	}
	s.each(0, func() *tensor { return convInput(s, s.d, s.keptAt(1), s.kinds[0].shape, opt) })
	s.each(1, func() *tensor { return convWeight(s, s.keptAt(0), s.d, s.kinds[1].shape, opt) })
}

// surrounded is the result's derivative, padded with the zeros that the derivative by the input
// needs, and the options of a transposed convolution that pads no more. The windows of the padded
// derivative also give the derivative by the kernels. So the input, which the convolution padded
// too, is not copied a second time. It is nil if the convolution has strides or no padding.
func surrounded(s *step, opt millrace.ConvOptions) (around *tensor, rest millrace.ConvOptions) {
	pads := make([]millrace.Padding, len(s.kinds[1].shape)-2)
	rest = opt
	rest.Padding = nil
	for i := range pads {
		reach, p := (s.kinds[1].shape[2+i]-1)*spatial(opt.Dilation, i), paddingOf(opt, i)
		if spatial(opt.Stride, i) != 1 || p[0] == 0 && p[1] == 0 || p[0] > reach || p[1] > reach || s.kinds[0].shape[2+i] == 0 {
			return nil, rest
		}
		pads[i] = millrace.Padding{Before: reach - p[0], After: reach - p[1]}
		rest.Padding = append(rest.Padding, [2]int{reach, reach})
	}
	return s.d.Pad(0, pads...), rest
}

func convTransposeBack(s *step, c adhook.ConvTranspose[millrace.ConvOptions]) {
	forward := c.Options
	forward.OutputPadding = nil
	s.each(0, func() *tensor {
		r := s.d.Conv(s.keptAt(1), forward)
		for i := 2; i < r.Rank(); i++ {
			if n := s.kinds[0].shape[i]; r.Dim(i) > n {
				r = s.first(r, i, n)
			}
		}
		return r
	})
	s.each(1, func() *tensor { return convWeight(s, s.d, s.keptAt(0), s.kinds[1].shape, forward) })
}

// spatial is an option's value along dim i, 1 if it is not set.
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

// convInput is the derivative of a convolution by its input, which has the shape in.
func convInput(s *step, d, kernels *tensor, in []int, opt millrace.ConvOptions) *tensor {
	if slices.Contains(in[2:], 0) { // only padding was convolved
		return zerosLike(d, in)
	}
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

// convWeight is the derivative of a convolution by its kernels, which have the shape k. It is the
// contraction of the input's windows with the result's derivative, over batch and positions. The
// outputs are its last dim, so the windows, which are most of the data, are read in memory order.
func convWeight(s *step, x, d *tensor, k []int, opt millrace.ConvOptions) *tensor {
	groups, dims := max(opt.Groups, 1), len(k)-2
	pads := make([]millrace.Padding, dims)
	for i := range pads {
		p := paddingOf(opt, i)
		pads[i] = millrace.Padding{Before: p[0], After: p[1]}
	}
	if slices.ContainsFunc(pads, func(p millrace.Padding) bool { return p != millrace.Padding{} }) {
		x = x.Pad(0, pads...)
	}
	for i := dims - 1; i >= 0; i-- {
		x = x.Windows(2+i, millrace.Window{Size: k[2+i], Stride: spatial(opt.Stride, i), Dilation: spatial(opt.Dilation, i)}, 0)
		x = s.first(x, 2+i, d.Dim(2+i))
	}
	spec := "ngcyj,ngoy->gcjo"
	if dims == 2 {
		spec = "ngcyjxi,ngoyx->gcjio"
	}
	r := millrace.Einsum(spec, s.inGroups(x, groups), s.inGroups(d, groups))
	order := []int{0, r.Rank() - 1}
	for i := 1; i < r.Rank()-1; i++ {
		order = append(order, i)
	}
	return r.Permute(order...).Reshape(k...)
}

// convWeightBehind is convWeight for strides of 1, from the windows of the padded derivative. An
// element of the kernels met the input at a fixed distance after the result, so the places of the
// kernels come out in reverse order.
func convWeightBehind(s *step, x, around *tensor, k []int, opt millrace.ConvOptions) *tensor {
	groups, dims := max(opt.Groups, 1), len(k)-2
	for i := dims - 1; i >= 0; i-- {
		around = around.Windows(2+i, millrace.Window{Size: k[2+i], Dilation: spatial(opt.Dilation, i)}, 0)
	}
	spec := "ngoyj,ngcy->gojc"
	if dims == 2 {
		spec = "ngoyjxi,ngcyx->gojic"
	}
	r := millrace.Einsum(spec, s.inGroups(around, groups), s.inGroups(x, groups))
	back, order := []millrace.Range{millrace.All, millrace.All}, []int{0, 1, r.Rank() - 1}
	for i := range dims {
		back, order = append(back, millrace.R(-1, millrace.End, -1)), append(order, 2+i)
	}
	return r.Slice(back...).Permute(order...).Reshape(k...)
}

// inGroups splits a tensor's channels, its second dim, into groups of channels.
func (s *step) inGroups(t *tensor, groups int) *tensor {
	shape := t.Shape()
	return t.Reshape(slices.Concat([]int{shape[0], groups, shape[1] / groups}, shape[2:])...)
}

// first keeps the first n elements along axis. It drops the places that a transposed convolution's
// output padding adds.
func (s *step) first(t *tensor, axis, n int) *tensor {
	if t.Dim(axis) <= n {
		return t
	}
	ranges := slices.Repeat([]millrace.Range{millrace.All}, axis+1)
	ranges[axis] = millrace.R(0, n)
	return t.Slice(ranges...)
}
