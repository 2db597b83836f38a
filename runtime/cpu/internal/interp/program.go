package interp

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

const (
	// GroupLen is the number of elements a block function handles at a time.
	GroupLen = 64
	// Overrun is the number of bytes that block functions read and write past the end: they process
	// whole groups.
	Overrun = GroupLen * 8
	// uniformBytes holds one group of the widest dtype.
	uniformBytes = GroupLen * 8
	// cacheBudget bounds the bytes of blocks that are live at the same time: a part of a
	// first-level data cache of 32 KiB.
	cacheBudget = 20 << 10
	minBlock    = 256
	maxBlock    = 2048
	// minRow is the length from which rows are walked one by one; several shorter rows are
	// gathered into a block.
	minRow = 512
)

// Function numbers below fnFirst are not block functions; the evaluator handles them.
const (
	fnConst   int32 = iota // imm
	fnScalar               // scalar slot
	fnLoad                 // operand slot
	fnIndexLo              // operand slot
	fnIndexHi              // operand slot
	fnLoadIf               // operand slot; src: guard
	fnLoadAt               // operand slot; src: index and guard; imm: mode, and in the bytes above it the size of an index
	fnFirst
)

// instr is one instruction; its position identifies its value.
type instr struct {
	fn   int32
	dst  int32    // its own position
	src  [4]int32 // values read
	slot int32    // of the operand or scalar
	size int32    // bytes of one element of the result
	reg  int32    // scratch: reg times the block length is the byte offset; -1: no block
	last int32    // the last instruction that reads the value; the number of instructions if a store does
	imm  uint64
}

// store stores a value through an output operand, or, for a Reduce, into a buffer of the caller.
type store struct {
	value  int32
	slot   int32 // output operand, or number of the Reduce
	reduce int32 // 1: slot is a Reduce
	_      int32
}

// Room is memory that a thread keeps from one Run to the next. The zero Room is empty; without
// one, a Run allocates its own.
type Room struct {
	values []value
}

// value is the address of a value during one call: group g starts at p + g*step.
type value struct {
	p    unsafe.Pointer
	step int
}

// Work returns the number of primitives per element.
func (t *Program) Work() int { return t.work }

// Program is a block program. It is immutable, and safe for concurrent use.
type Program struct {
	instrs   []instr
	stores   []store
	block    int // elements, a multiple of GroupLen
	regBytes int // bytes of all registers, for one element
	nops     int // operands of the kernel
	work     int // primitives per element

	fns []blockFunc // goFns or softFns
}

// Scratch returns the bytes of scratch memory that Run needs; the layout is described below.
func (t *Program) Scratch() int64 { return int64(t.regsAt() + t.regBytes*t.block) }

// The scratch memory contains: the addresses of values, the instructions to run for every block, a
// byte per operand and per store, the values that are the same at every point, and the registers.
// All parts start at multiples of 64 bytes.
func (t *Program) listAt() int     { return align64(len(t.instrs) * 16) }
func (t *Program) flagsAt() int    { return t.listAt() + align64(len(t.instrs)*8) }
func (t *Program) uniformsAt() int { return t.flagsAt() + align64(t.nops+len(t.stores)) }
func (t *Program) regsAt() int     { return t.uniformsAt() + len(t.instrs)*uniformBytes }

func align64(n int) int { return (n + 63) &^ 63 }

// blockLen chooses the block length for a number of live bytes per element.
func blockLen(live int) int {
	n := maxBlock
	for n > minBlock && n*live > cacheBudget {
		n /= 2
	}
	return n
}

// fnKey identifies a block function: an op or primitive, the dtype of its result, and the dtype of
// its operands, which is Invalid if the result's dtype determines it.
type fnKey struct {
	op     ir.Op
	dt, in ir.DType
	imm    uint64 // of Lookup and Rare
}
