package operands

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// Operand is one operand of a launch.
type Operand struct {
	Base   unsafe.Pointer // nil for index operands
	Offset int64          // elements
	Stride [runtime.MaxRank]int64
	Stages []runtime.Stage
	// Guard is set for outputs: bit d is set where Stride[d] is 0 and Dims[d] is above 1. Only
	// points at position 0 of every such dim store.
	Guard uint32
	// IndexStride and IndexSize serve loads through an index i in [0, IndexSize), which read
	// IndexStride*i elements further.
	IndexStride, IndexSize int64
	Stream                 bool // an output that may be stored past the caches
}

// Args is the input of an evaluation. Points are numbered row-major over Dims.
type Args struct {
	Rank    int
	Dims    [runtime.MaxRank]int64
	Ops     []Operand
	Scalars []uint64
	Bufs    []unsafe.Pointer // one per Reduce: its value for point p goes to element p-begin
	Scratch []byte           // of this thread
	Fault   *IndexFault      // set if the kernel loads through indices
	Ahead   []int64          // for machine code: bytes from an operand's point to the one to prefetch, 0 for none; nil: no prefetching
}
