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
	// guard is set for outputs: bit d is set where stride[d] is 0 and dims[d] is above 1. Only
	// points at position 0 of every such dim store.
	guard uint32
	// istride and isize serve loads through an index i in [0, isize), which read istride*i
	// elements further.
	istride, isize int64
	stream         bool // output that may be stored past the caches
}

// indexFault holds the least index that was out of range, and its operand. The least one is kept,
// whichever thread finds it, to make the message independent of the threads' order.
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

// args holds the input of an evaluation. Points are numbered row-major over dims.
type args struct {
	rank    int
	dims    [runtime.MaxRank]int64
	ops     []operand
	scalars []uint64
	bufs    []unsafe.Pointer // one per Reduce: its value for point p goes to element p-begin
	scratch []byte           // of this thread
	values  *[]t0Val         // of this thread, for tier 0; nil: the evaluation allocates its own
	fault   *indexFault      // set if the kernel loads through indices
	ahead   []int64          // for machine code: bytes from an operand's point to the one to prefetch, 0 for none; nil: no prefetching
	merged  *mergedCache     // of this thread and launch, for machine code; nil: not used
	tape    *tape            // records the work; usually nil
}
