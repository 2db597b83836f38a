package native

import (
	"fmt"
)

// GPR is a general register by its number in encodings.
type GPR uint8

const (
	RAX GPR = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	r10
	r11
	r12
	R13
	R14
	R15
	NoReg GPR = 0xff
)

// Label is a place in the code; its number is known before its offset.
type Label int32

// Mem is an operand in memory: [base + index*scale + disp]. If base is noReg, it is an entry of the
// pool of constants. step is 0, or the bytes of the one element that every lane reads.
type Mem struct {
	Base, Index GPR
	Scale       uint8
	Step        uint8
	Disp        int32
}

func At(base GPR, disp int) Mem { return Mem{Base: base, Index: NoReg, Scale: 1, Disp: int32(disp)} }

// RM is a register of any kind, or memory.
type RM struct {
	Reg   uint8
	InMem bool
	Mem
}

func InReg(r uint8) RM { return RM{Reg: r} }
func InMem(m Mem) RM   { return RM{InMem: true, Mem: m} }
func OfGPR(r GPR) RM   { return RM{Reg: uint8(r)} }

const NoImm = -1

// Buffer is code that is being made.
type Buffer struct {
	ISA    *ISA
	Buf    []byte
	Labels []int32 // offsets, -1 if not known yet
	Fixes  []Fix
	pool   pool
	Lines  *Listing // nil if no listing is needed
	Err    error
}

// Fix is four bytes that hold the distance from end to a label or to a constant.
type Fix struct {
	At, End int32
	To      Label
	Pool    bool
	Kind    uint8 // of the instruction, as the machine counts them
}

func (a *Buffer) Fail(format string, args ...any) {
	if a.Err == nil {
		a.Err = fmt.Errorf("codegen/native: "+format, args...)
	}
}

func (a *Buffer) Emit(b ...byte) { a.Buf = append(a.Buf, b...) }

func (a *Buffer) Emit32(x int32) {
	a.Emit(byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
}

func (a *Buffer) NewLabel() Label {
	a.Labels = append(a.Labels, -1)
	return Label(len(a.Labels) - 1)
}

func (a *Buffer) Place(l Label) {
	a.Labels[l] = int32(len(a.Buf))
	if a.Lines != nil {
		a.Lines.label(len(a.Buf), l)
	}
}

// Finish places the constants behind the code, and fills in all distances. It returns the buffer's
// memory.
func (a *Buffer) Finish(m Machine) ([]byte, error) {
	for len(a.Buf)%64 != 0 {
		a.Emit(a.ISA.Trap)
	}
	base := len(a.Buf)
	a.Buf = append(a.Buf, a.pool.bytes...)
	for _, f := range a.Fixes {
		to := int32(base) + int32(f.To)
		if !f.Pool {
			if to = a.Labels[f.To]; to < 0 {
				a.Fail("a jump goes to a label that has no place")
			}
		}
		m.Settle(f, to-f.End)
	}
	return a.Buf, a.Err
}

// pool holds constants, each once.
type pool struct {
	bytes []byte
	have  map[Constant]int32
}

// Constant is count copies of an element of size bytes.
type Constant struct {
	Bits  uint64
	Size  uint8
	Count uint8
}

// Constant returns the memory of a constant.
func (a *Buffer) Constant(c Constant) Mem {
	p := &a.pool
	if p.have == nil {
		p.have = map[Constant]int32{}
	}
	pos, ok := p.have[c]
	if !ok {
		for len(p.bytes)%(int(c.Size)*int(c.Count)) != 0 {
			p.bytes = append(p.bytes, 0)
		}
		pos = int32(len(p.bytes))
		for range c.Count {
			for i := range c.Size {
				p.bytes = append(p.bytes, byte(c.Bits>>(8*i)))
			}
		}
		p.have[c] = pos
	}
	return Mem{Base: NoReg, Index: NoReg, Scale: 1, Disp: pos}
}

// Data puts bytes into the pool, at a multiple of 64, and returns their memory.
func (a *Buffer) Data(b []byte) Mem {
	p := &a.pool
	for len(p.bytes)%64 != 0 {
		p.bytes = append(p.bytes, 0)
	}
	pos := int32(len(p.bytes))
	p.bytes = append(p.bytes, b...)
	return Mem{Base: NoReg, Index: NoReg, Scale: 1, Disp: pos}
}

// Arith is one of the instructions that share a form: add, or, and, sub, xor, cmp.
type Arith uint8

const (
	Add  Arith = 0
	Or   Arith = 1
	And  Arith = 4
	Sub  Arith = 5
	Xor  Arith = 6
	Cmp  Arith = 7
	Shl        = 4 // of shifts
	Shr        = 5
	Sar        = 7
	DivU       = 6 // of the group of multiplications and divisions
	DivS       = 7
)

var ArithNames = map[Arith]string{Add: "add", Or: "or", And: "and", Sub: "sub", Xor: "xor", Cmp: "cmp"}

// Cond is a condition of a jump.
type Cond uint8

const (
	Below        Cond = 2 // unsigned
	AboveEqual   Cond = 3
	Equal        Cond = 4
	NotEqual     Cond = 5
	Less         Cond = 12 // signed
	GreaterEqual Cond = 13
	LessEqual    Cond = 14
	Greater      Cond = 15
)

var CondNames = map[Cond]string{Below: "b", AboveEqual: "ae", Equal: "e", NotEqual: "ne", Less: "l", GreaterEqual: "ge", LessEqual: "le", Greater: "g"}
