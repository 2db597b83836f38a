package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Tier 0 runs a kernel without a compiler. The body becomes a block program: each instruction is
// one call of a block function that handles some hundred elements. Values between instructions are
// blocks of scratch memory that stay in the first-level cache. Block functions are generated from
// the expansions of package ir (z_block_*.go).
//
// A block function always handles whole groups of 64 elements, so it has no remainder loop. If a
// block ends inside a group, its loads are copied and filled up with zeros. The lanes after the
// end then hold the kernel's values for zero operands, never garbage that could trap in an integer
// division or a table lookup.
//
// A value that is the same at every point (a scalar, a constant, an operand of stride 0, and
// anything computed from these) is a single group, computed once per call. Readers read this group
// again for each of their groups.

const (
	// groupLen is the number of elements a block function handles at a time.
	groupLen = 64
	// uniformBytes holds one group of the widest dtype.
	uniformBytes = groupLen * 8
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

// t0Instr is one instruction; its position identifies its value.
type t0Instr struct {
	fn   int32
	dst  int32    // its own position
	src  [4]int32 // values read
	slot int32    // of the operand or scalar
	size int32    // bytes of one element of the result
	reg  int32    // scratch: reg times the block length is the byte offset; -1: no block
	last int32    // the last instruction that reads the value; the number of instructions if a store does
	imm  uint64
}

// t0Store stores a value through an output operand, or, for a Reduce, into a buffer of the caller.
type t0Store struct {
	value  int32
	slot   int32 // output operand, or number of the Reduce
	reduce int32 // 1: slot is a Reduce
	_      int32
}

// t0Val is the address of a value during one call: group g starts at p + g*step.
type t0Val struct {
	p    unsafe.Pointer
	step int
}

// tier0Code is a block program. It is immutable.
type tier0Code struct {
	instrs   []t0Instr
	stores   []t0Store
	block    int // elements, a multiple of groupLen
	regBytes int // bytes of all registers, for one element
	nops     int // operands of the kernel
	work     int // primitives per element

	fns []blockFunc // goFns or softFns
}

// scratch returns the bytes that an evaluation needs; the layout is described below.
func (t *tier0Code) scratch() int64 { return int64(t.regsAt() + t.regBytes*t.block) }

// The scratch memory contains: the addresses of values, the instructions to run for every block, a
// byte per operand and per store, the values that are the same at every point, and the registers.
// All parts start at multiples of 64 bytes.
func (t *tier0Code) listAt() int     { return align64(len(t.instrs) * 16) }
func (t *tier0Code) flagsAt() int    { return t.listAt() + align64(len(t.instrs)*8) }
func (t *tier0Code) uniformsAt() int { return t.flagsAt() + align64(t.nops+len(t.stores)) }
func (t *tier0Code) regsAt() int     { return t.uniformsAt() + len(t.instrs)*uniformBytes }

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

// buildTier0 makes the block program of a kernel that still contains high-level ops: most of them
// are one block function each.
func buildTier0(kernel *codegen.Kernel) (*tier0Code, error) {
	k, err := lowerForBlocks(kernel, false)
	if err != nil {
		return nil, err
	}
	return buildLowered(k, false)
}

// buildLowered is buildTier0 for a lowered kernel; soft ones flush denormals.
func buildLowered(k *codegen.Kernel, soft bool) (*tier0Code, error) {
	t, err := compileBlocks(k)
	if err == nil && soft {
		t.fns = softFns()
	}
	return t, err
}
