package cpu

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// operand is one operand of a launch.
type operand struct {
	base   unsafe.Pointer // nil for index operands
	offset int64          // elements
	stride [runtime.MaxRank]int64
	stages []runtime.Stage
	// guard: for outputs, bit d is set where stride[d] is 0 and dims[d] above
	// 1. Only points at position 0 of every such dim store.
	guard uint32
	// Loads through an index i in [0, isize): the element istride*i further on.
	istride, isize int64
	stream         bool // outputs that may be stored past the caches
}

// indexFault is the least index that was out of range, and its operand: whichever thread
// finds it, so that the message does not depend on their order.
type indexFault struct {
	mu             sync.Mutex
	set            bool
	operand, index int64
}

func (f *indexFault) reset() { f.set, f.operand, f.index = false, 0, 0 }

func (f *indexFault) note(operand int, index int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.set || index < f.index || index == f.index && int64(operand) < f.operand {
		f.set, f.operand, f.index = true, int64(operand), index
	}
}

// args is what an evaluation needs. Points are numbered row-major over dims.
type args struct {
	rank    int
	dims    [runtime.MaxRank]int64
	ops     []operand
	scalars []uint64
	bufs    []unsafe.Pointer // one per Reduce: its value of point p goes to element p-begin
	scratch []byte           // of this thread
	values  *[]t0Val         // of this thread, for tier 0; nil: it makes its own
	fault   *indexFault      // where the kernel loads through indices
	ahead   []int64          // bytes from an operand's point to the one to be asked for meanwhile, 0 for none, for machine code; nil: of none
	merged  *mergedCache     // of this thread and launch, for machine code; nil: it does without
	tape    *tape            // takes down what is done; nil as a rule
}
