package native

// Frame is the memory with which a function is called, at a multiple of 64 bytes: its arguments and
// its spill memory. The caller fills in the arguments. Offsets are in bytes.
//
//	0   points of a row
//	8   rows
//	24  set to 1 with the first index that is out of range where that is a fault
//	32  its operand
//	40  the least such index
//	64  operands, OperandBytes each: see Address and the words after it
//	    scalars, a word each
type Frame struct {
	Bytes    int // in total
	Operands int // those of the kernel, then one for each Reduce
	Scalars  int // offset of the first

	lanes         [laneArrays]int // 0 for none
	params, saved int
}

// The words of an operand, by offset within its OperandBytes. Steps are in bytes. An index operand
// has a position instead of an address, and its steps are in elements.
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
	Ahead        = 40 // for Variant.Ahead: bytes from a point to what is prefetched with it
	Positions    = 40 // staged operand: address of each point's byte distance from Address, or of an index's position
)

// Scratch arrays of one vector each, for lane-by-lane code.
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

// room allocates n bytes behind the rest and returns their offset.
func (f *Frame) room(n int) int {
	at := f.Bytes
	f.Bytes += (n + 63) &^ 63
	return at
}

// vector allocates room for one vector: a value that others read, or one that is spilled.
func (f *Frame) vector(isa *ISA) int {
	at := f.Bytes
	f.Bytes += isa.Bytes
	return at
}

func operandWord(i, word int) Mem { return At(RDI, FrameArgs+i*OperandBytes+word) }

// lane returns the offset of a scratch array.
func (f *Frame) lane(i int) int {
	if f.lanes[i] == 0 {
		f.lanes[i] = f.room(64)
	}
	return f.lanes[i]
}

// param returns the offset of a parameter of a sub-program. The results follow the parameters.
func (f *Frame) param(i int) int {
	if f.params == 0 {
		f.params = f.room(64 * (maxParams + 1))
	}
	return f.params + 64*i
}

// register returns the offset at which a register is saved; masks follow the vectors.
func (f *Frame) register(r int, isa *ISA) int {
	if f.saved == 0 {
		f.saved = f.room(isa.Regs*isa.Bytes + 64)
	}
	return f.saved + r*isa.Bytes
}
