package cpu

// evaluator computes points of a phase: tier 0 as a block program, machine code by a
// call.
type evaluator interface {
	// eval computes points [begin, end). It may be called by several threads at once, and
	// keeps nothing of a.
	eval(a *args, begin, end int64)
	// scratch is how many bytes of memory an evaluation needs.
	scratch() int64
}

// phases are the phases that the Go executor walks: those of machine code where there is
// some, else those of tier 0.
func (r *ready) phases() *phasePlan {
	if r.code != nil && r.code.evaluators != nil {
		return r.code.phasePlan
	}
	return r.sched.plan
}

// evaluator is that of phase i of phases.
func (r *ready) evaluator(i int) evaluator {
	if r.code != nil && r.code.evaluators != nil {
		return r.code.evaluators[i]
	}
	return r.sched.tier0[i]
}
