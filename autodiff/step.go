package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/ir"
)

// step is one rule at work: the derivative of one op's result on its way to the operands.
// What a rule makes by do, and does not give, is released behind it.
type step struct {
	*node
	follow  bool // derivatives are followed themselves
	d       *tensor
	wants   [3]bool
	temps   []*tensor
	given   [3]*tensor
	slices  [3]*piece // given, as a part of the operand's derivative
	refused string    // why an operand that is wanted has no derivative
}

// piece is a derivative that is 0 but at a range of the operand.
type piece struct {
	d      *tensor
	ranges []millrace.Range
	start  []int // the same, where steps are 1: for putting neighbours together
	shape  []int // of the operand
}

// do notes a tensor of the rule's own, once, and returns it.
func (s *step) do(t *tensor) *tensor {
	if n := len(s.temps); n == 0 || s.temps[n-1] != t && !slices.Contains(s.temps, t) {
		s.temps = append(s.temps, t)
	}
	return t
}

// kept is operand i, or the result for 3, that the rule asked for: followed only where
// derivatives are, and as wide as it is computed.
func (s *step) keptAt(i int) *tensor {
	t := s.kept[i]
	if !s.follow {
		t = s.do(follow.Plain(t).(*tensor))
	}
	return s.wide(t)
}

func (s *step) x() *tensor { return s.keptAt(0) }
func (s *step) y() *tensor { return s.keptAt(1) }
func (s *step) z() *tensor { return s.keptAt(2) }

// out is the op's result.
func (s *step) out() *tensor { return s.keptAt(3) }

// wide is a tensor of 16 bits in the dtype that it is computed in.
func (s *step) wide(t *tensor) *tensor {
	dt := t.DType()
	if !dt.Storage() || s.rule.moves {
		return t
	}
	return s.do(t.Cast(dt.Compute()))
}

// give is the derivative of operand i, of its shape or one that it broadcasts to.
func (s *step) give(i int, d *tensor) {
	if !s.wants[i] {
		return
	}
	d = s.sumTo(d, s.kinds[i].shape)
	if dt := s.kinds[i].dt; d.DType() != dt && d.Err() == nil {
		d = s.do(d.Cast(dt))
	}
	s.given[i] = s.own(d)
}

// givePiece is give for a derivative that is 0 outside of ranges.
func (s *step) givePiece(i int, d *tensor, ranges []millrace.Range, start []int) {
	if s.wants[i] {
		s.slices[i] = &piece{s.own(d), ranges, start, s.kinds[i].shape}
	}
}

// own takes a tensor off the list of those that the rule's end releases; one that is not
// on it, or was taken before, is another's, and gets a second handle.
func (s *step) own(d *tensor) *tensor {
	if k := slices.Index(s.temps, d); k >= 0 {
		s.temps = slices.Delete(s.temps, k, k+1)
		return d
	}
	return follow.Hold(d).(*tensor)
}

// sumTo undoes broadcasting: it adds up the dims along which shape was repeated.
func (s *step) sumTo(d *tensor, shape []int) *tensor {
	from := follow.Shape(d)
	if slices.Equal(from, shape) || d.Err() != nil {
		return d
	}
	var axes []int
	for i, n := range from {
		k := i - (len(from) - len(shape))
		if k < 0 || shape[k] == 1 && n != 1 {
			axes = append(axes, i)
		}
	}
	if len(axes) > 0 {
		d = s.do(d.Sum(axes...))
	}
	if !slices.Equal(follow.Shape(d), shape) && d.Len() == ir.Shape(shape).Elems() {
		d = s.do(d.Reshape(shape...))
	}
	if !slices.Equal(follow.Shape(d), shape) { // narrower: what it stands for is the same all along
		d = s.do(d.Expand(shape...))
	}
	return d
}

func (s *step) end() {
	for _, t := range s.temps {
		follow.LetGo(t)
	}
	s.temps = s.temps[:0]
}

// keepDims is a shape with the dims along axes at size 1.
func keepDims(shape, axes []int) []int {
	r := slices.Clone(shape)
	for _, a := range axes {
		r[a] = 1
	}
	return r
}

// isScalar reports that operand i was a number, or left out.
func (s *step) isScalar(i int) bool { return s.kinds[i].dt == millrace.Invalid }
