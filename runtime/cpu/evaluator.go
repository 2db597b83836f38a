package cpu

// evaluator computes points of a phase: tier 0 by a block program, machine code and C by a call.
type evaluator interface {
	// eval computes points [begin, end). Several threads may call it at once. It keeps no
	// reference to a.
	eval(a *args, begin, end int64)
	// scratch returns the bytes of memory that an evaluation needs.
	scratch() int64
}

// evaluator returns the evaluator of a phase: compiled code if the launch has any, else tier 0.
func (r *ready) evaluator(phase int) evaluator {
	if r.code == nil {
		r.tape.lose() // only machine code can be recorded
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
