package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

func permuteBack(s *step) {
	axes := s.attr().Axes
	back := make([]int, len(axes))
	for i, a := range axes {
		back[a] = i
	}
	s.give(0, s.d.Permute(back...))
}

// toBack brings a derivative back to the operand's device. If both are on one device it is not
// copied: streams of a device can use each other's tensors.
func toBack(s *step, _ adhook.To) {
	if root.OneDevice(s.kept[0], s.d) {
		s.give(0, s.d)
		return
	}
	s.give(0, s.d.To(s.kept[0].Stream()))
}

// regions are the ranges of a part that has the given start, step and number of elements along each
// dim.
func regions(start, step, count []int) []millrace.Range {
	rs := make([]millrace.Range, len(count))
	for i, n := range count {
		switch {
		case n == 0:
			rs[i] = millrace.R(0, 0)
		case step[i] > 0:
			rs[i] = millrace.R(start[i], start[i]+(n-1)*step[i]+1, step[i])
		}
	}
	return rs
}

func allOnes(steps []int) bool {
	return !slices.ContainsFunc(steps, func(n int) bool { return n != 1 })
}

// forwards says which elements the slice of a Slice or an Assign has, in forward order: start and
// steps, all positive. turned lists the axes along which the slice goes backwards. count is the
// slice's shape.
func (s *step) forwards(count []int) (start, steps, turned []int) {
	start, steps = slices.Clone(s.attr().Start), slices.Clone(s.attr().Step)
	for i := range steps {
		if steps[i] < 0 {
			if count[i] > 0 {
				start[i] += (count[i] - 1) * steps[i]
			}
			steps[i] = -steps[i]
			turned = append(turned, i)
		}
		if steps[i] == 0 {
			steps[i] = 1
		}
	}
	return start, steps, turned
}

// turn flips d along axes, if any.
func (s *step) turn(d *tensor, axes []int) *tensor {
	if len(axes) == 0 {
		return d
	}
	return d.Flip(axes...)
}

// sliceBack: the derivative is that of the result in the slice, and 0 elsewhere.
func sliceBack(s *step) {
	count := s.d.Shape()
	start, steps, turned := s.forwards(count)
	d := s.turn(s.d, turned)
	if slices.Equal(count, s.kinds[0].shape) {
		s.give(0, d)
		return
	}
	var known []int
	if allOnes(steps) {
		known = start
	}
	s.givePiece(0, d, regions(start, steps, count), known)
}

func padBack(s *step) {
	in := s.kinds[0].shape
	start, steps := s.attr().Start, s.attr().Step
	s.each(0, func() *tensor { return s.d.Slice(regions(start, steps, in)...) })
	s.each(1, func() *tensor { // the padding, if it is a tensor of one number
		all := s.d.Sum()
		return all.Sub(s.d.Slice(regions(start, steps, in)...).Sum())
	})
}

func concatBack(s *step) {
	axis, at := s.attr().Axes[0], 0
	for i := range 2 {
		n := s.kinds[i].shape[axis]
		from := at
		at += n
		s.each(i, func() *tensor {
			rs := make([]millrace.Range, axis+1)
			rs[axis] = millrace.R(from, from+n)
			return s.d.Slice(rs...)
		})
	}
}

func assignBack(s *step) {
	start, steps, turned := s.forwards(s.kinds[1].shape)
	rs := regions(start, steps, s.kinds[1].shape)
	s.each(0, func() *tensor { return s.d.AssignScalar(0, rs...) })
	s.each(1, func() *tensor { return s.turn(s.d.Slice(rs...), turned) })
}

// gatherBack adds each derivative to the element that was read. The operand may be repeated along
// some dims, as an embedding is for each text of a batch. These dims are merged into the axis, so
// the scatter's target is not larger than the operand.
func gatherBack(s *step) {
	axis, in, out := s.attr().Axes[0], s.kinds[0].shape, s.d.Shape()
	var repeated []int
	for i, n := range in {
		if i != axis && n == 1 && out[i] != 1 {
			repeated = append(repeated, i)
		}
	}
	s.each(0, func() *tensor {
		d, index, to, shape := s.d, s.asKept(1), axis, in
		if len(repeated) > 0 {
			all := index.Shape()
			for _, i := range repeated {
				all[i] = out[i]
			}
			d, index = s.merged(d, repeated, axis), s.merged(index.Expand(all...), repeated, axis)
			to, shape = 0, nil
			for i, n := range in {
				if slices.Contains(repeated, i) {
					continue
				}
				if i < axis {
					to++
				}
				shape = append(shape, n)
			}
		}
		sum := zerosLike(d, shape).ScatterAdd(index, d, to, s.attr().Mode)
		return sum.Reshape(in...)
	})
}

// merged is t with some dims moved to the front of the axis and merged with it.
func (s *step) merged(t *tensor, dims []int, axis int) *tensor {
	var order, shape []int
	for i, n := range t.Shape() {
		if slices.Contains(dims, i) {
			continue
		}
		if i == axis {
			order = append(order, dims...)
			for _, k := range dims {
				n *= t.Dim(k)
			}
		}
		order, shape = append(order, i), append(shape, n)
	}
	return t.Permute(order...).Reshape(shape...)
}

// scatterKeeps: if updates are added or written, their indices are enough.
func scatterKeeps(a *ir.Attr) keeps {
	switch a.Combine {
	case millrace.CombineAdd, millrace.CombineSet:
		return operand1
	case millrace.CombineMul:
		return operand1 | operand2
	}
	return operand0 | operand1 | operand2 | result
}

func scatterBack(s *step) {
	axis, mode, shape := s.attr().Axes[0], s.attr().Mode, s.kinds[2].shape
	index := s.asKept(1)
	// back reads, for each update, t's element at the update's place; for dropped updates it is 0.
	back := func(t *tensor) *tensor { return t.TakeAlong(index, axis, mode) }
	// places numbers the updates along the axis, in the order in which they are combined.
	places := func() *tensor {
		wide := slices.Repeat([]int{1}, len(shape))
		wide[axis] = shape[axis]
		line := millrace.ArangeOn(root.Beside(s.d), millrace.Int32, 0, float64(shape[axis]), 1)
		return line.Reshape(wide...).Expand(shape...)
	}
	switch s.attr().Combine {
	case millrace.CombineAdd:
		s.give(0, s.d)
		s.each(2, func() *tensor { return back(s.d) })
	case millrace.CombineMul:
		s.each(0, func() *tensor {
			ones := fullLike(s.d, 1, s.kinds[0].shape...)
			return s.d.Mul(ones.ScatterMul(index, s.z(), axis, mode))
		})
		if s.wants[2] {
			s.refused = "what is multiplied in has no rule, only what it is multiplied into"
		}
	case millrace.CombineSet: // the last update of a place is the result
		s.each(0, func() *tensor {
			return s.d.ScatterSet(index, zerosLike(s.d, shape), axis, mode)
		})
		s.each(2, func() *tensor {
			none := millrace.FullOn(root.Beside(s.d), millrace.Int32, -1, s.kinds[0].shape...)
			p := places()
			last := none.ScatterMax(index, p, axis, mode)
			return millrace.WhereScalar(back(last).Eq(p), back(s.d), 0)
		})
	case millrace.CombineMax, millrace.CombineMin: // the operand, else the first of several equal updates
		out := s.out()
		kept := s.x().Eq(out)
		s.each(0, func() *tensor { return millrace.WhereScalar(kept, s.d, 0) })
		s.each(2, func() *tensor {
			n := shape[axis]
			p := places()
			is := s.z().Eq(back(out))
			marked := millrace.WhereScalar(is, p, float64(n))
			none := millrace.FullOn(root.Beside(s.d), millrace.Int32, float64(n), s.kinds[0].shape...)
			first := none.ScatterMin(index, marked, axis, mode)
			won := is.And(back(first).Eq(p))
			free := back(kept.Cast(millrace.Int32)).EqScalar(0)
			return millrace.WhereScalar(won.And(free), back(s.d), 0)
		})
	}
}
