package fusion

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// finish ends the path in memory laid out as v says. Stages of v become strides where the dims of
// the space can be split for them. Stages are slow: finding an element through them costs a kernel
// more than all else, and it prevents vector loads.
func (l *layouter) finish(t *tracer, v *View) error {
	p := affine{off: v.Offset}
	rank := t.space().rank
	if v.Stride == nil {
		n := t.linear()
		p.addScaled(&n, 1, rank)
	} else {
		for d := range t.rank {
			if t.shape[d] > 1 {
				p.addScaled(&t.at[d], v.Stride[d], rank)
			}
		}
	}
	if t.indexSize != 0 && len(v.Stages) > 0 {
		return errIndexedView
	}
	t.indexStride = p.idx
	stages := v.Stages
	for len(stages) > 0 && l.unstage(t, &p, &stages[0]) {
		stages = stages[1:]
	}
	t.close(p)
	t.stages = append(t.stages, stages...)
	return nil
}

// unstage splits the position p as stage s does and combines the digits by strides. If it returns
// false, p is the old position, in dims that may have become finer.
func (l *layouter) unstage(t *tracer, p *affine, s *runtime.Stage) bool {
	if len(s.Dims) > ir.MaxRank {
		return false
	}
	var digits [ir.MaxRank]affine
	t.at[0], t.rank, t.shape[0] = *p, 1, 1 // refine updates at, so a finer dim is seen here
	rest := *p
	for d := len(s.Dims) - 1; d > 0; d-- {
		if s.Dims[d] > 1 && !l.split(t, &digits, &rest, &digits[d], s.Dims[d]) {
			*p = t.at[0]
			return false
		}
	}
	if len(s.Dims) > 0 {
		digits[0] = rest
	}
	*p = affine{off: s.Offset}
	for d := range s.Dims {
		p.addScaled(&digits[d], s.Stride[d], t.space().rank)
	}
	return true
}
