package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
)

// workspace is the memory of one share of a contraction.
type workspace struct {
	scratch []byte
	bufs    [rows.MaxOps]unsafe.Pointer
	blocks  [rows.MaxOps][]uint64 // memory of bufs: a block of values each
	room    interp.Room
	ops     []operand // of a part of a launch
	args    args      // of the current evaluation
	merged  mergedCache
}

// workspaceFor returns a workspace that is large enough for the launch. The caller puts it back
// into e.free.
func (e *executor) workspaceFor(r *ready) *workspace {
	w := e.free.Take()
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
	mine.Bufs, mine.Scratch, mine.room, mine.merged = w.bufs[:], w.scratch, &w.room, &w.merged
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
	a := args{Args: operands.Args{Ops: list}}
	r.writeArgs(&a)
	return a
}
