package native

// Frame is the memory that a function is called with, at a multiple of 64 bytes: its
// arguments, and room for what registers have no room for. Whoever calls fills in the
// arguments; offsets are in bytes.
//
//	0   points of a row
//	8   rows
//	24  set to 1 with the first index that is out of range where that is a fault
//	32  its operand
//	40  the least such index
//	64  operands, OperandBytes each: see Operand
//	    scalars, a word each
type Frame struct {
	Bytes    int // in all
	Operands int // those of the kernel, then one for each Reduce
	Scalars  int // where they begin

	lanes         [laneArrays]int // 0 where there is none
	params, saved int
}

// Where an operand's words are within its OperandBytes. Steps count bytes; of an index
// operand the address is a position, and steps count elements.
const (
	FramePoints  = 0
	FrameRows    = 8
	FrameFault   = 24
	frameCount   = 16
	frameReturn  = 48
	FrameUnits   = 56 // of a join of rows
	FrameArgs    = 64
	OperandBytes = 48
	Address      = 0  // of the first point
	Step         = 8  // to the next point
	RowStep      = 16 // to the next row
	IndexSize    = 24 // elements of the axis that an index names
	IndexStep    = 32 // bytes from one of them to the next
	Ahead        = 40 // of an operand of Variant.Ahead: how far behind a point is what is asked for, in bytes
	Positions    = 40 // of a staged operand: where the distance of each point from Address is, in bytes, or an index operand's position itself
)

// lane scratch: arrays of a vector each.
const (
	laneA = iota
	laneB
	laneG
	laneR
	laneArrays
)

const maxParams = 4

func newFrame(operands, scalars int) *Frame {
	f := &Frame{Operands: operands}
	f.Scalars = FrameArgs + operands*OperandBytes
	f.Bytes = (f.Scalars + 8*scalars + 63) &^ 63
	return f
}

// room is memory behind what there is.
func (f *Frame) room(n int) int {
	at := f.Bytes
	f.Bytes += (n + 63) &^ 63
	return at
}

// vector is room for a vector: a value that others read, or one that no register has
// room for.
func (f *Frame) vector(isa *ISA) int {
	at := f.Bytes
	f.Bytes += isa.Bytes
	return at
}

func operandWord(i, word int) mem { return at(rdi, FrameArgs+i*OperandBytes+word) }

// lane is where an array of lanes begins.
func (f *Frame) lane(i int) int {
	if f.lanes[i] == 0 {
		f.lanes[i] = f.room(64)
	}
	return f.lanes[i]
}

// param is where a parameter of a sub-program is, or, behind them, its results.
func (f *Frame) param(i int) int {
	if f.params == 0 {
		f.params = f.room(64 * (maxParams + 1))
	}
	return f.params + 64*i
}

// register is where a register is saved; those of masks are behind the vectors.
func (f *Frame) register(r int, isa *ISA) int {
	if f.saved == 0 {
		f.saved = f.room(isa.Regs*isa.Bytes + 64)
	}
	return f.saved + r*isa.Bytes
}
