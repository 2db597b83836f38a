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

	lanes, params, saved, ret int // parts of the rest
	slots                     int // where what is left begins
	spills                    int // of the part at hand
}

// Where an operand's words are within its OperandBytes. Steps count bytes; of an index
// operand the address is a position, and steps count elements.
const (
	FramePoints  = 0
	FrameRows    = 8
	FrameFault   = 24
	frameCount   = 16
	frameReturn  = 48
	FrameArgs    = 64
	OperandBytes = 48
	Address      = 0  // of the first point
	Step         = 8  // to the next point
	RowStep      = 16 // to the next row
	IndexSize    = 24 // elements of the axis that an index names
	IndexStep    = 32 // bytes from one of them to the next
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

func newFrame(operands, scalars int, isa *ISA) *Frame {
	f := &Frame{Operands: operands}
	f.Scalars = FrameArgs + operands*OperandBytes
	n := (f.Scalars + 8*scalars + 63) &^ 63
	f.lanes = n
	n += laneArrays * 64
	f.params = n
	n += (maxParams + 1) * 64
	f.saved = n
	n += isa.Regs*isa.Bytes + 64
	f.slots, f.Bytes = n, n
	return f
}

// slot is room for a vector, for good.
func (f *Frame) slot(isa *ISA) int {
	at := f.slots
	f.slots += isa.Bytes
	f.Bytes = max(f.Bytes, f.slots)
	return at
}

// spill is room for a vector until the part ends. No slots are made in between.
func (f *Frame) spill(isa *ISA) int32 {
	at := f.slots + f.spills*isa.Bytes
	f.spills++
	f.Bytes = max(f.Bytes, f.slots+f.spills*isa.Bytes)
	return int32(at)
}

func operandWord(i, word int) mem { return at(rdi, FrameArgs+i*OperandBytes+word) }

func (f *Frame) lane(i int) int { return f.lanes + 64*i }

func (f *Frame) param(i int) int { return f.params + 64*i }
