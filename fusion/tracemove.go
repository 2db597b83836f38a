package fusion

import (
	"fmt"
	"math"

	"github.com/millrace-go/millrace/ir"
)

// window goes from a Window's result to its operand.
func (t *tracer) window(attr *ir.Attr, operand ir.Shape) {
	ax, rank := attr.Axes[0], t.space().rank
	var a affine
	a.addScaled(&t.at[ax], int64(attr.Step[0]), rank)
	a.addScaled(&t.at[ax+1], int64(attr.Step[1]), rank)
	t.at[ax], t.shape[ax] = a, int64(operand[ax])
	for d := ax + 1; d < len(operand); d++ {
		t.at[d], t.shape[d] = t.at[d+1], t.shape[d+1]
	}
	t.rank = len(operand)
}

// gather goes from the result of a Gather to its data; along the axis, to the place that the index
// selects.
func (t *tracer) gather(axis int, data ir.Shape) error {
	if t.indexSize != 0 {
		return fmt.Errorf("%w: an index within an index", errPath)
	}
	for d, n := range data {
		switch {
		case d == axis:
			t.at[d], t.indexSize = affine{idx: 1}, int64(n)
		case n == 1:
			t.at[d] = affine{}
		case int64(n) != t.shape[d]:
			return errPath
		}
		t.shape[d] = int64(n)
	}
	return nil
}

// move goes from the result of a Pad, Concat or Assign to the operand that h names, or to a bound
// of that operand's part. Where the element is outside of the part, the position has no meaning,
// and guards prevent the read.
func (l *layouter) move(t *tracer, n *ir.Node, operand, first ir.Shape, h Hop) error {
	if n.Op == ir.Assign && h.Arg == 0 || n.Op == ir.Pad && h.Arg > 0 || n.Attr == nil || len(operand) != t.rank {
		return errPath
	}
	if h.Bound != NoBound {
		if h.Dim < 0 || h.Dim >= t.rank {
			return errPath
		}
		return l.bound(t, n, operand, first, h)
	}
	wide := false
	var between [ir.MaxRank]int64
	for d, size := range operand {
		_, step, count := part(n, operand, first, h.Arg, d)
		t.at[d] = t.behind(n, operand, first, h.Arg, d)
		t.shape[d], between[d] = int64(count), 1
		if count <= 1 {
			t.at[d] = affine{} // there is only one element
		} else if step = max(step, -step); step > 1 {
			wide, between[d] = true, int64(step)
			t.shape[d] = int64(size * step)
		}
	}
	if !wide || l.stepped(t, operand, &between) {
		return nil
	}
	if err := t.stage(); err != nil {
		return err
	}
	s := t.digits
	for d, size := range operand {
		t.at[d], t.shape[d] = affine{}, int64(size)
		if size <= 1 {
			continue
		}
		t.at[d].c[s.rank] = 1
		s.dims[s.rank] = int64(size)
		s.rank++
		if between[d] > 1 {
			s.dims[s.rank] = between[d]
			s.rank++
		}
	}
	return nil
}

// piece goes from an operand of a Concat up to the result.
func (t *tracer) piece(n *ir.Node, result, first ir.Shape, arg int) {
	axis := n.Attr.Axes[0]
	if arg == 1 {
		t.at[axis].off += int64(first[axis])
	}
	t.shape[axis] = int64(result[axis])
}

// stepped goes to the elements of an operand whose elements are apart in the result, along the dims
// where between is more than 1. It needs no stage, but must split the domain's dims: one dim then
// counts the operand's elements, and another is 0 exactly at an element. It reports false if the
// dims cannot be split so.
func (l *layouter) stepped(t *tracer, operand ir.Shape, between *[ir.MaxRank]int64) bool {
	var next [ir.MaxRank]affine
	for d := range operand {
		if between[d] > 1 {
			which, _, ok := l.apart(t, &next, t.at[d], between[d])
			if !ok {
				return false
			}
			next[d] = which
		}
	}
	for d, size := range operand {
		if between[d] > 1 {
			t.at[d], t.shape[d] = next[d], int64(size)
		}
	}
	return true
}

// apart takes the distance a after the first of several elements that are step apart. It returns
// the number of the element there (which), and a number that is 0 exactly where there is one
// (rest).
func (l *layouter) apart(t *tracer, next *[ir.MaxRank]affine, a affine, step int64) (which, rest affine, ok bool) {
	over := (a.off%step + step) % step
	first := (a.off - over) / step
	if over > 0 { // the elements are in the next step
		first, over = first+1, over-step
	}
	a.off = 0
	if !l.split(t, next, &a, &rest, step) {
		return a, rest, false
	}
	a.off += first
	rest.off += over
	return a, rest, true
}

// behind is the distance of an element after the part's first element, along dim d and in the
// part's direction.
func (t *tracer) behind(n *ir.Node, operand, first ir.Shape, arg, d int) affine {
	start, step, _ := part(n, operand, first, arg, d)
	sign := int64(1)
	if step < 0 {
		sign = -1
	}
	a := affine{off: -sign * int64(start)}
	a.addScaled(&t.at[d], sign, t.space().rank)
	return a
}

// bound goes to the number that a [Bound] describes. It must fit into 31 bits and a sign.
func (l *layouter) bound(t *tracer, n *ir.Node, operand, first ir.Shape, h Hop) error {
	if t.shape[h.Dim] > math.MaxInt32 || operand[h.Dim] > math.MaxInt32 {
		return fmt.Errorf("%w: %s of %v", ir.ErrUnsupported, n.Op, n.Shape)
	}
	_, step, count := part(n, operand, first, h.Arg, h.Dim)
	step = max(step, -step)
	a := t.behind(n, operand, first, h.Arg, h.Dim)
	t.rank, t.shape[0] = 1, math.MaxInt32
	rank := t.space().rank
	switch {
	case h.Bound == Low:
		t.at[0] = a
	case h.Bound == High:
		t.at[0] = affine{off: int64(count-1) * int64(step)}
		t.at[0].addScaled(&a, -1, rank)
	case step == 1 || count <= 1:
		t.at[0] = affine{}
	default:
		t.at[0] = a
		if _, rest, ok := l.apart(t, &[ir.MaxRank]affine{}, a, int64(step)); ok {
			t.at[0] = rest
			break
		}
		if err := t.stage(); err != nil {
			return err
		}
		s := t.digits
		s.rank, s.dims[0], s.dims[1] = 2, int64(count), int64(step)
		t.at[0] = affine{}
		t.at[0].c[1] = 1
	}
	return nil
}
