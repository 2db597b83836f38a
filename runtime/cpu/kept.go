package cpu

import (
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/replay"
)

const (
	// keptWork is the estimated time, in nanoseconds, up to which launches are recorded: in longer
	// launches the time to write frames does not matter.
	keptWork = 16e3
	// keptBytesAll is the most bytes that all recordings of a device may take.
	keptBytesAll = 32 << 20
)

// keep runs a launch of a prepared list from its recording. The first run walks the launch and
// records it.
func (e *executor) keep(r *ready) error {
	if r.kept.Recorded() {
		if !r.kept.Run(&e.memory[0].Arena, r.fault) {
			return errRefused
		}
		return r.faulted()
	}
	return r.kept.Record(&r.p.dev.kept, func(t *replay.Tape) error {
		if t != nil {
			r.tape = &tape{t}
			defer func() { r.tape = nil }()
		}
		return e.walk(r)
	})
}

// tape is a replay.Tape with what the driver's walkers record. It is nil if nothing is recorded.
type tape struct{ *replay.Tape }

func (t *tape) lose() {
	if t != nil {
		t.Lose()
	}
}

// recorder returns the tape of a launch that is recorded, else nil.
func (r *ready) recorder() operands.Recorder {
	if r.tape == nil {
		return nil
	}
	return r.tape.Tape
}

// phase records a call of a phase's code with the frame that a walk has written.
func (t *tape) phase(w *machineWalk, code *jit.Code) {
	if p := w.p; len(p.staged)+len(p.boxed) > 0 {
		t.Lose()
	} else {
		t.Phase(replay.Phase{Code: code, MXCSR: p.mxcsr, Kernel: p.kernel, Direct: p.direct, Args: &w.a.Args}, w.frame)
	}
}
