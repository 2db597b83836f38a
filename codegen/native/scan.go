package native

import "unsafe"

// DiffersFrame is the argument of the function that finds where rows of vectors differ from a value,
// in the bits given by Bits.
type DiffersFrame struct {
	X          unsafe.Pointer
	Ld         int64 // from row to row, in bytes
	Rows       int64 // at least 1
	Vectors    int64 // of a row
	Than, Bits uint64
	From, To   int64 // results: no vector before From, and none from To on, differs
}

// BeyondFrame is the argument of the function that tests whether some bits of an element, without
// its sign, are a number greater than a limit.
type BeyondFrame struct {
	X       unsafe.Pointer
	Ld      int64
	Rows    int64 // at least 1
	Vectors int64 // of a row, at least 1
	Bits    uint64
	Limit   uint64
	Beyond  int64 // result: 0 if there is none
}

// GreaterMask is the mask register in which beyond notes elements, on targets with masks.
const GreaterMask = 1

// scans makes both functions.
func (g *dotGen) scans() {
	g.differs()
	g.beyond()
}

// differs searches from the start and from the end, and stops at the first difference.
func (g *dotGen) differs() {
	var f DiffersFrame
	const base, ld, at0, end, row, rows = RSI, RDX, RBX, RCX, R8, R9
	const than, bits, sum = 0, 1, 2
	g.D.Differs = g.begin("vectors that differ")
	g.Load(base, Field(unsafe.Offsetof(f.X)))
	g.Load(ld, Field(unsafe.Offsetof(f.Ld)))
	g.Load(end, Field(unsafe.Offsetof(f.Vectors)))
	g.SplatVec(than, g.ISA.Bytes, 8, Field(unsafe.Offsetof(f.Than)))
	g.SplatVec(bits, g.ISA.Bytes, 8, Field(unsafe.Offsetof(f.Bits)))
	g.Clear(at0)
	// look compares the vectors of all rows at one place, whose address is in row.
	look := func(found Label) {
		next := g.NewLabel()
		g.Load(rows, Field(unsafe.Offsetof(f.Rows)))
		g.ClearVec(sum, g.ISA.Bytes)
		g.Place(next)
		g.VecOp(Xor, g.ISA.Bytes, sum+1, than, InMem(At(row, 0)))
		g.VecOp(Or, g.ISA.Bytes, sum, sum, InReg(sum+1))
		g.Op(Add, row, OfGPR(ld))
		g.OpImm(Sub, OfGPR(rows), 1)
		g.JumpIf(NotEqual, next)
		g.JumpIfAny(sum, bits, found)
	}
	forwards, backwards, first, last := g.NewLabel(), g.NewLabel(), g.NewLabel(), g.NewLabel()
	shift := ShiftOf(g.ISA.Bytes)
	g.Place(forwards)
	g.Op(Cmp, at0, OfGPR(end))
	g.JumpIf(GreaterEqual, first)
	g.Copy(row, at0)
	g.Shift(Shl, true, row, shift)
	g.Op(Add, row, OfGPR(base))
	look(first)
	g.OpImm(Add, OfGPR(at0), 1)
	g.Jump(forwards)
	g.Place(first)
	g.Store(Field(unsafe.Offsetof(f.From)), at0)
	g.Place(backwards)
	g.Op(Cmp, at0, OfGPR(end))
	g.JumpIf(GreaterEqual, last)
	g.Copy(row, end)
	g.Shift(Shl, true, row, shift)
	g.Op(Add, row, OfGPR(base))
	g.OpImm(Sub, OfGPR(row), g.ISA.Bytes)
	look(last)
	g.OpImm(Sub, OfGPR(end), 1)
	g.Jump(backwards)
	g.Place(last)
	g.Store(Field(unsafe.Offsetof(f.To)), end)
	g.Ret()
}

func (g *dotGen) beyond() {
	var f BeyondFrame
	const base, ld, left, row, rows = RSI, RDX, RCX, R8, R9
	const bits, limit, sum, temp = 0, 1, 2, 3
	g.D.Beyond = g.begin("elements beyond a limit")
	g.Load(base, Field(unsafe.Offsetof(f.X)))
	g.Load(ld, Field(unsafe.Offsetof(f.Ld)))
	g.Load(rows, Field(unsafe.Offsetof(f.Rows)))
	g.SplatVec(bits, g.ISA.Bytes, g.D.Size, Field(unsafe.Offsetof(f.Bits)))
	g.SplatVec(limit, g.ISA.Bytes, g.D.Size, Field(unsafe.Offsetof(f.Limit)))
	g.ClearVec(sum, g.ISA.Bytes)
	if g.ISA.Masks {
		g.SetMask(GreaterMask, false)
	}
	line, next, found := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.Place(line)
	g.Copy(row, base)
	g.Load(left, Field(unsafe.Offsetof(f.Vectors)))
	g.align(32)
	g.Place(next)
	g.VecOp(And, g.ISA.Bytes, temp, bits, InMem(At(row, 0)))
	g.JoinGreater(sum, temp, limit)
	g.OpImm(Add, OfGPR(row), g.ISA.Bytes)
	g.OpImm(Sub, OfGPR(left), 1)
	g.JumpIf(NotEqual, next)
	g.Op(Add, base, OfGPR(ld))
	g.OpImm(Sub, OfGPR(rows), 1)
	g.JumpIf(NotEqual, line)
	g.Set(RAX, 1)
	g.TestGreater(sum)
	g.JumpIf(NotEqual, found)
	g.Clear(RAX)
	g.Place(found)
	g.Store(Field(unsafe.Offsetof(f.Beyond)), RAX)
	g.Ret()
}
