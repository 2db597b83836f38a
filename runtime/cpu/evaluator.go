package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
)

// evaluator computes points of a phase: tier 0 by a block program, machine code and C by a call.
type evaluator interface {
	// eval computes points [begin, end). Several threads may call it at once. It keeps no
	// reference to a.
	eval(a *args, begin, end int64)
	// scratch returns the bytes of memory that an evaluation needs.
	scratch() int64
}

// blockPhase is a phase in tier 0.
type blockPhase struct{ *interp.Program }

func (t blockPhase) eval(a *args, begin, end int64) { t.Run(&a.Args, a.room, begin, end) }

func (t blockPhase) scratch() int64 { return t.Scratch() }

// cPhase is a phase that a C compiler made.
type cPhase struct{ *ccode.Phase }

func (t cPhase) eval(a *args, begin, end int64) { t.Eval(&a.Args, begin, end) }

func (t cPhase) scratch() int64 { return t.Scratch() }

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

// evaluation evaluates phases of a launch on one thread.
type evaluation struct {
	in args
	r  *ready
}

func (v *evaluation) Args() *operands.Args { return &v.in.Args }

func (v *evaluation) Eval(phase int, begin, end int64) {
	v.r.evaluator(phase).eval(&v.in, begin, end)
}

// host is an executor that runs a launch, as the rooms that walk launches see it.
type host struct {
	e *executor
	r *ready
}

func (h *host) Reserve(thread int, n int64) unsafe.Pointer {
	if thread == operands.Shared {
		thread = h.e.threads
	}
	return h.e.memory[thread].Reserve(n)
}

func (h *host) Open(thread int) (first, second operands.Evaluator) {
	m := &h.e.memory[thread]
	clear(m.merged[:])
	for i := range m.evals {
		m.evals[i] = evaluation{in: args{room: &m.room, merged: &m.merged, tape: h.r.tape}, r: h.r}
	}
	return &m.evals[0], &m.evals[1]
}

// Code returns a phase's machine code, for rows.
func (h *host) Code(thread, phase int) rows.Code {
	p, ok := h.r.evaluator(phase).(*machinePhase)
	if !ok {
		return nil
	}
	m := &h.e.memory[thread]
	m.folding.machineWalk = machineWalk{p: p, a: &m.evals[0].in, merged: &m.folding.own}
	return &m.folding
}

// Close drops the pointers that would keep memory alive.
func (h *host) Close(thread int) {
	m := &h.e.memory[thread]
	clear(m.merged[:])
	clear(m.evals[:])
}
