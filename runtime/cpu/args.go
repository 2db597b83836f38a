package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// operand is one operand of a launch: abi.h's mr_operand.
type operand struct {
	base   unsafe.Pointer // nil for index operands
	offset int64          // elements
	stride [runtime.MaxRank]int64
	stages []runtime.Stage
	// guard: for outputs, bit d is set where stride[d] is 0 and dims[d] above
	// 1. Only points at position 0 of every such dim store.
	guard uint32
}

// args is what an evaluation needs: abi.h's mr_args.
type args struct {
	rank    int
	dims    [runtime.MaxRank]int64
	ops     []operand
	scalars []uint64
	bufs    []unsafe.Pointer // one per Reduce: its value of point p goes to element p-begin
	scratch []byte           // of this goroutine
}
