package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// lookPhase is the phase during which the rows of the next tile are asked for, -1 where
// none is. Tier 0 never waits for memory, one sweep does nothing else, and small tensors are
// in a cache.
func (r *ready) lookPhase() int {
	if !r.mayLook() || r.total*r.pointBytes(r.sched) < r.p.dev.lookBytes {
		return -1
	}
	return r.plan().look()
}

// look is the phase that may ask for the next tile: the last that computes what it folds,
// else the last. It computes on what is in a cache, so memory is idle then.
func (plan *phasePlan) look() int {
	look, last := -1, -1
	for i := range plan.Phases {
		ph := &plan.Phases[i]
		if ph.Level != codegen.Point {
			continue
		}
		if last = i; computesFolded(ph) {
			look = i
		}
	}
	if look < 0 {
		return last
	}
	return look
}

// computesFolded tells phases that compute what they fold.
func computesFolded(ph *codegen.Phase) bool {
	computed := len(ph.Stores) > 0
	for _, red := range ph.Reduces {
		computed = computed || ph.Body[red.Value].Op != ir.Load
	}
	return computed && len(ph.Reduces) > 0
}

// mayLook reports that the next tile can be asked for.
func (r *ready) mayLook() bool {
	return r.code != nil && r.mode == modeRows && r.plan().sweeps >= 2
}

// ahead is the bytes of an element of an input whose elements lie in the order
// of the launch's points, 0 of other operands.
func (r *ready) ahead(i int) int {
	o, a := &r.p.kernel.Operands[i], &r.l.Args[i]
	if o.Kind != codegen.Input || len(a.Stages) > 0 || r.p.lanewise[i] {
		return 0
	}
	dense := int64(1)
	for d := r.l.Rank - 1; d >= 0; d-- {
		if a.Stride[d] != dense && r.l.Dims[d] > 1 {
			return 0
		}
		dense *= r.l.Dims[d]
	}
	return o.DT.Size()
}
