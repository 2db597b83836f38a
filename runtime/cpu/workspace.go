package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// functionJob is a job made of a function, for contractions.
type functionJob struct{ f func(begin, end int64) }

func (j *functionJob) share(_ int, begin, end int64) { j.f(begin, end) }

// split runs f over shares of [0, total) of about grain units.
func (e *executor) split(threads int, total, grain int64, f func(begin, end int64)) {
	e.functions.f = f
	e.pool.split(threads, total, grain, &e.functions)
	e.functions.f = nil
}

// workspace is the memory of one share of a functionJob.
type workspace struct {
	scratch []byte
	bufs    [maxReduces]unsafe.Pointer
	blocks  [maxReduces][]uint64 // memory of bufs: a block of values each
	values  []t0Val
	ops     []operand // of a part of a launch
	args    args      // of the current evaluation
	merged  mergedCache
}

// workspaceFor returns a workspace that is large enough for the launch. The caller puts it back
// into e.free.
func (e *executor) workspaceFor(r *ready) *workspace {
	w := e.free.take()
	if w == nil {
		w = new(workspace)
	}
	n := 0
	for i := range r.plan().Phases {
		n = max(n, int(r.evaluator(i).scratch()))
	}
	if len(w.scratch) < n {
		b := make([]byte, n+63)
		skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
		w.scratch = b[skip : skip+n]
	}
	for k := range r.plan().reduces {
		if w.blocks[k] == nil {
			w.blocks[k] = make([]uint64, ir.FoldBlock+1) // loops end with a pointer past the block
		}
		w.bufs[k] = unsafe.Pointer(unsafe.SliceData(w.blocks[k]))
	}
	return w
}

// take copies the arguments of a phase's evaluations into w, which saves an allocation per
// evaluation. From evaluation to evaluation only bufs, and bases and offsets of operands, change.
func (w *workspace) take(a *args) *args {
	mine := &w.args
	*mine = *a
	mine.bufs, mine.scratch, mine.values, mine.merged = w.bufs[:], w.scratch, &w.values, &w.merged
	return mine
}

// forget drops the pointers that would keep memory alive.
func (w *workspace) forget() {
	w.args = args{}
	for i := range w.merged {
		w.merged[i].p = nil
	}
}

// argsInto returns a launch in the form that evaluations take. It reuses list for the operands.
func argsInto(r *ready, list []operand) args {
	a := args{ops: list}
	r.writeArgs(&a)
	return a
}
