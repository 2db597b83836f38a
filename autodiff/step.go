package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

// step is one run of a rule: it takes the derivative of one op's result to the operands. The
// derivative and the kept operands are steps of a list (adhook.Steps), and so is every tensor that
// the rule computes from them. A rule is therefore a formula: steps that it does not give are
// released after it.
type step struct {
	*node
	steps   adhook.Steps[tensor]
	follow  bool // derivatives are followed, too
	d       *tensor
	wants   [3]bool
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

// keptAt is operand i (3: the result), which the rule keeps. It is followed only if derivatives are
// followed. A 16-bit tensor is cast to the dtype that the rule computes in.
func (s *step) keptAt(i int) *tensor { return s.wide(s.asKept(i)) }

// asKept is keptAt without the cast.
func (s *step) asKept(i int) *tensor { return s.steps.Step(s.kept[i], !s.follow) }

// plain is t for a computation that has no derivative.
func (s *step) plain(t *tensor) *tensor { return s.steps.Step(t, true) }

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
	return t.Cast(dt.Compute())
}

// give sets the derivative of operand i. d has the operand's shape, or one that broadcasting
// relates to it.
func (s *step) give(i int, d *tensor) {
	if !s.wants[i] {
		return
	}
	d = s.sumTo(d, s.kinds[i].shape)
	if dt := s.kinds[i].dt; d.DType() != dt && d.Err() == nil {
		d = d.Cast(dt)
	}
	s.given[i] = s.own(d)
}

// givePiece is give for a derivative that is 0 outside ranges.
func (s *step) givePiece(i int, d *tensor, ranges []millrace.Range, start []int) {
	if s.wants[i] {
		s.slices[i] = &piece{s.own(d), ranges, start, s.kinds[i].shape}
	}
}

// own is a handle of d that outlives the rule.
func (s *step) own(d *tensor) *tensor {
	if s.steps.Take(d) {
		return d
	}
	return root.Hold(d)
}

// sumTo undoes broadcasting: it sums the dims along which an operand of the given shape was
// repeated.
func (s *step) sumTo(d *tensor, shape []int) *tensor {
	from := root.Shape(d)
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
		d = d.Sum(axes...)
	}
	if !slices.Equal(root.Shape(d), shape) && d.Len() == ir.Shape(shape).Elems() {
		d = d.Reshape(shape...)
	}
	if !slices.Equal(root.Shape(d), shape) { // d has fewer elements: repeat them
		d = d.Expand(shape...)
	}
	return d
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
