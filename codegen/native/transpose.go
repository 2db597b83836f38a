package native

import "unsafe"

// TransposeFrame describes a transposition: element p of row i goes to lane i of the vector at Dst
// + p*LdDst, for p below K. K is a multiple of the elements in 16 bytes. There is one row per lane
// of a vector; several rows may be the same.
type TransposeFrame struct {
	Rows  [16]unsafe.Pointer
	Dst   unsafe.Pointer
	LdDst int64 // in bytes
	K     int64
}

// PanelsFrame describes a copy into panels of two vectors of columns: K rows of Full panels, and of
// Rest further columns, which zeros extend to a panel.
type PanelsFrame struct {
	Src, Dst   unsafe.Pointer
	LdSrc      int64 // from row to row, in bytes
	Panel      int64 // from panel to panel, in bytes
	Full, Rest int64
	K          int64
}

// Piece is the number of neighbours of a row that are transposed at once: 16 bytes of them, so that
// all shuffles stay within 16 bytes.
func (g *dotGen) Piece() int { return 16 / g.D.Size }

// pieces is the number of neighbouring pieces of each row that are read together: a cache line, if
// there are enough registers. Otherwise the lines of rows that are far apart could evict each other
// before they are used.
func (g *dotGen) pieces() int { return g.ISA.LinePieces }

// transposes makes the functions of TransposeFrame and PanelsFrame.
func (g *dotGen) transposes() {
	var f TransposeFrame
	const dst, stride, stride3, offset, count = RDX, RBX, RCX, RSI, R8
	g.D.Transpose = g.begin("transpose")
	g.Load(dst, Field(unsafe.Offsetof(f.Dst)))
	g.Load(stride, Field(unsafe.Offsetof(f.LdDst)))
	g.Lea(stride3, At2(stride, stride, 2, 0))
	g.Load(count, Field(unsafe.Offsetof(f.K)))
	g.Clear(offset)
	done := g.NewLabel()
	for _, pieces := range []int{g.pieces(), 1} { // whole lines, then the rest
		loop, left, steps := g.NewLabel(), g.NewLabel(), pieces*g.Piece()
		g.OpImm(Sub, OfGPR(count), steps)
		g.JumpIf(Less, left)
		g.align(32)
		g.Place(loop)
		for p, r := range g.squares(0, pieces, unsafe.Offsetof(f.Rows), offset) {
			m := At(dst, 0)
			switch p %= g.Piece(); p {
			case 1, 2:
				m.Index, m.Scale = stride, uint8(p)
			case 3:
				m.Index = stride3
			}
			g.StoreWhole(m, r)
			if p == g.Piece()-1 {
				g.Lea(dst, At2(dst, stride, uint8(g.Piece()), 0))
			}
		}
		g.OpImm(Add, OfGPR(offset), 16*pieces)
		g.OpImm(Sub, OfGPR(count), steps)
		g.JumpIf(GreaterEqual, loop)
		g.Place(left)
		g.OpImm(Add, OfGPR(count), steps)
		g.JumpIf(Equal, done)
	}
	g.Place(done)
	g.Ret()
	g.panels()
}

// squares loads pieces of as many rows as there are lanes, at an offset from the row pointers in
// the frame. It returns the registers in order, each of which has one element of every row: the
// registers from first on, perhaps with the next one behind them. It also changes as many more
// registers as a piece has elements, and rax.
func (g *dotGen) squares(first, pieces int, rows uintptr, offset GPR) []uint8 {
	n := g.Piece()
	in := make([]uint8, pieces*n)
	for i := range in {
		in[i] = uint8(first + i)
	}
	for row := range g.D.Lanes { // each 16 bytes of registers are squares of n by n
		g.Load(RAX, Field(rows+uintptr(8*row)))
		g.LoadPieces(in, n, row, pieces, offset)
	}
	t := uint8(first + len(in))
	for p := range pieces {
		s := in[p*n : p*n+n]
		if g.Square(s, t); n == 2 {
			s[0], t = t, s[0] // the old register becomes the scratch register
		}
	}
	return in
}

// panels makes the function that copies rows into panels.
func (g *dotGen) panels() {
	var f PanelsFrame
	const src, dst, from, to, left, stride, panel, count, rest = RSI, RDX, R8, R9, RCX, RBX, r10, r11, r12
	g.D.Panels = g.begin("rows into panels")
	row, next, part, done := g.NewLabel(), g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.Load(src, Field(unsafe.Offsetof(f.Src)))
	g.Load(dst, Field(unsafe.Offsetof(f.Dst)))
	g.Load(stride, Field(unsafe.Offsetof(f.LdSrc)))
	g.Load(panel, Field(unsafe.Offsetof(f.Panel)))
	g.Load(count, Field(unsafe.Offsetof(f.K)))
	g.Load(rest, Field(unsafe.Offsetof(f.Rest)))
	g.PartMasks(rest, RAX)
	g.align(32)
	g.Place(row)
	g.Copy(from, src)
	g.Copy(to, dst)
	g.Load(left, Field(unsafe.Offsetof(f.Full)))
	g.OpImm(Sub, OfGPR(left), 1)
	g.JumpIf(Less, part)
	g.align(32)
	g.Place(next)
	for v := range 2 {
		g.LoadWhole(uint8(v), At(from, v*g.ISA.Bytes))
	}
	for v := range 2 {
		g.StoreWhole(At(to, v*g.ISA.Bytes), uint8(v))
	}
	g.OpImm(Add, OfGPR(from), 2*g.ISA.Bytes)
	g.Op(Add, to, OfGPR(panel))
	g.OpImm(Sub, OfGPR(left), 1)
	g.JumpIf(GreaterEqual, next)
	g.Place(part)
	g.OpImm(Cmp, OfGPR(rest), 0)
	g.JumpIf(Equal, done)
	g.PartPanel(from, to, rest)
	g.Place(done)
	g.Op(Add, src, OfGPR(stride))
	g.OpImm(Add, OfGPR(dst), 2*g.ISA.Bytes)
	g.OpImm(Sub, OfGPR(count), 1)
	g.JumpIf(NotEqual, row)
	g.Ret()
}
