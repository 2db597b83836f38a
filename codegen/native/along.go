package native

import "unsafe"

// alongs makes tiles for columns that run along k. Squares of y are transposed in registers just
// before the chains use them, and are not stored. With few rows this is faster than packing.
func (g *dotGen) alongs() {
	g.D.AlongStep = g.pieces() * g.Piece()
	most := g.ISA.AlongRows
	if g.pairs {
		return
	}
	g.D.Alongs = []int{-1}
	for rows := 1; rows <= most; rows++ {
		g.D.Alongs = append(g.D.Alongs, g.begin("%d rows by columns along k", rows))
		(&TileForm{dotGen: g, Rows: rows, Vecs: 1, acc: uint8(rows)}).along()
	}
}

func (t *TileForm) along() {
	var f AlongFrame
	const offset = RDX
	loop := t.NewLabel()
	t.Load(TileC, Field(unsafe.Offsetof(f.C)))
	t.Set(TilePanels, 1)
	t.open()
	t.Bases(t)
	t.Load(TileK, Field(unsafe.Offsetof(f.K)))
	t.Clear(offset)
	t.align(32)
	t.Place(loop)
	y := t.squares(int(t.acc), t.pieces(), unsafe.Offsetof(f.Columns), offset)
	temp := t.acc + uint8(len(y)) + 1 // squares does not need its other registers any more
	t.AlongSteps(t, y, temp, offset)
	t.OpImm(Add, OfGPR(offset), len(y)*t.D.Size)
	t.OpImm(Sub, OfGPR(TileK), len(y))
	t.JumpIf(Greater, loop)
	t.close()
	t.Ret()
}

// DotsFrame describes chains of products. Each lane is a chain of its own, over K neighbours of X
// and K of Y, starting at +0. K is a multiple of the elements in 16 bytes. X and Y have one pointer
// per lane of a vector, of which several may be equal. The result at To is a vector.
type DotsFrame struct {
	X, Y [16]unsafe.Pointer
	To   unsafe.Pointer
	K    int64
}

// dots makes the function of DotsFrame. If one result is a long sum, its blocks of k become lanes,
// so the steps do not wait for each other.
func (g *dotGen) dots() {
	var f DotsFrame
	const count, offset = RCX, RDX
	if g.D.Dots = -1; g.pairs {
		return
	}
	g.D.Dots = g.begin("chains of neighbours by neighbours")
	loop, n := g.NewLabel(), g.Piece()
	sum, temp := uint8(15), uint8(14)
	g.ClearVec(sum, g.ISA.Bytes)
	g.Load(count, Field(unsafe.Offsetof(f.K)))
	g.Clear(offset)
	g.align(32)
	g.Place(loop)
	x := g.squares(0, 1, unsafe.Offsetof(f.X), offset)
	y := g.squares(n+1, 1, unsafe.Offsetof(f.Y), offset)
	t := &TileForm{dotGen: g}
	for p := range n {
		t.Multiply(t, sum, x[p], InReg(y[p]), temp)
	}
	g.OpImm(Add, OfGPR(offset), 16)
	g.OpImm(Sub, OfGPR(count), n)
	g.JumpIf(Greater, loop)
	g.Load(RAX, Field(unsafe.Offsetof(f.To)))
	g.StoreWhole(At(RAX, 0), sum)
	g.Ret()
}
