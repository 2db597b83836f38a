package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/ir"
)

// step is one run of a rule: it takes the derivative of one op's result to the operands. Tensors
// that a rule makes by do, and does not give, are released after the rule.
type step struct {
	*node
	follow  bool // derivatives are followed, too
	d       *tensor
	wants   [3]bool
	temps   []*tensor
	given   [3]*tensor
	slices  [3]*piece // derivatives given as pieces of an operand's derivative
	refused string    // why a wanted operand has no derivative
}

// piece is a derivative that is 0 outside a range of the operand.
type piece struct {
	d      *tensor
	ranges []millrace.Range
	start  []int // start of each range; nil unless all steps are 1
	shape  []int // the operand's shape
}

// do adds t to the rule's own tensors, once, and returns t.
func (s *step) do(t *tensor) *tensor {
	if n := len(s.temps); n == 0 || s.temps[n-1] != t && !slices.Contains(s.temps, t) {
		s.temps = append(s.temps, t)
		follow.Want(t) // a segment may end within the rule
	}
	return t
}

// keptAt is operand i (3: the result), which the rule keeps. It is followed only if derivatives are
// followed. A 16-bit tensor is cast to the dtype that the rule computes in.
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

// wide casts a 16-bit tensor to the dtype that it is computed in.
func (s *step) wide(t *tensor) *tensor {
	dt := t.DType()
	if !dt.Storage() || s.rule.moves {
		return t
	}
	return s.do(t.Cast(dt.Compute()))
}

// give sets the derivative of operand i. d has the operand's shape, or one that broadcasting
// relates to it.
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

// givePiece is give for a derivative that is 0 outside ranges.
func (s *step) givePiece(i int, d *tensor, ranges []millrace.Range, start []int) {
	if s.wants[i] {
		s.slices[i] = &piece{s.own(d), ranges, start, s.kinds[i].shape}
	}
}

// own takes a tensor off the list of tensors to release. A tensor that is not on the list, or was
// taken before, has another owner, so own makes a second handle of it.
func (s *step) own(d *tensor) *tensor {
	if k := slices.Index(s.temps, d); k >= 0 {
		s.temps = slices.Delete(s.temps, k, k+1)
		return d
	}
	return follow.Hold(d).(*tensor)
}

// sumTo undoes broadcasting: it sums the dims along which an operand of the given shape was
// repeated.
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
	if !slices.Equal(follow.Shape(d), shape) { // d has fewer elements: repeat them
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

// keepDims is a shape whose dims along axes have size 1.
func keepDims(shape, axes []int) []int {
	r := slices.Clone(shape)
	for _, a := range axes {
		r[a] = 1
	}
	return r
}

// isScalar reports that operand i is a number or absent.
func (s *step) isScalar(i int) bool { return s.kinds[i].dt == millrace.Invalid }
