package cpu

// evaluator computes points of a phase: tier 0 as a block program, machine code and C by a
// call.
type evaluator interface {
	// eval computes points [begin, end). It may be called by several threads at once, and
	// keeps nothing of a.
	eval(a *args, begin, end int64)
	// scratch is how many bytes of memory an evaluation needs.
	scratch() int64
}

// evaluator is that of a phase: of the launch's code where there is some, else of tier 0.
func (r *ready) evaluator(phase int) evaluator {
	if r.code == nil {
		r.tape.lose() // only machine code is taken down
		return r.sched.tier0[phase]
	}
	e := r.code.evaluators[phase]
	if r.tape != nil {
		if _, ok := e.(*machinePhase); !ok {
			r.tape.lose()
		}
	}
	return e
}
