package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// lookPhase returns the phase that prefetches the rows of the next tile, or -1 if no phase does.
// Prefetching is of no use in tier 0, which never waits for memory, in launches of one sweep,
// which only wait for memory, and for small tensors, which are in a cache.
func (r *ready) lookPhase() int {
	if !r.mayLook() || r.total*r.pointBytes(r.sched) < r.p.dev.lookBytes {
		return -1
	}
	return r.plan().look()
}

// look returns the phase that may prefetch the next tile: the last phase that computes what it
// folds, else the last phase over points. Memory is idle during that phase because its data is in
// a cache.
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

// computesFolded reports that a phase computes the values that it folds, or stores results while
// it folds.
func computesFolded(ph *codegen.Phase) bool {
	computed := len(ph.Stores) > 0
	for _, red := range ph.Reduces {
		computed = computed || ph.Body[red.Value].Op != ir.Load
	}
	return computed && len(ph.Reduces) > 0
}

// mayLook reports that the next tile can be prefetched.
func (r *ready) mayLook() bool {
	return r.code != nil && r.mode == modeRows && r.plan().sweeps >= 2
}

// ahead returns the bytes of an element of an input whose elements are in the order of the
// launch's points, and 0 for other operands.
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
