package native

import "unsafe"

// alongs makes tiles for columns that run along k. Squares of y are transposed in registers just
// before the chains use them, and are not stored. With few rows this is faster than packing.
func (g *dotGen) alongs() {
	g.d.AlongStep = g.pieces() * g.piece()
	most := 8
	switch {
	case g.pairs:
		return
	case !g.isa.EVEX && !g.isa.A64:
		most = 4
	}
	g.d.Alongs = []int{-1}
	for rows := 1; rows <= most; rows++ {
		g.d.Alongs = append(g.d.Alongs, g.begin("%d rows by columns along k", rows))
		(&tileForm{dotGen: g, rows: rows, vecs: 1, acc: uint8(rows)}).along()
	}
}

func (t *tileForm) along() {
	var f AlongFrame
	const offset = rdx
	loop := t.newLabel()
	t.load(tileC, field(unsafe.Offsetof(f.C)))
	t.set(tilePanels, 1)
	t.open()
	t.xBases()
	t.load(tileK, field(unsafe.Offsetof(f.K)))
	t.clear(offset)
	t.align(32)
	t.place(loop)
	y := t.squares(int(t.acc), t.pieces(), unsafe.Offsetof(f.Columns), offset)
	temp := t.acc + uint8(len(y)) + 1 // squares does not need its other registers any more
	if t.isa.A64 {
		t.neonAlong(y, temp, offset)
	} else {
		t.alongSteps(y, temp)
	}
	t.opImm(add, ofGPR(offset), len(y)*t.size)
	t.opImm(sub, ofGPR(tileK), len(y))
	t.jumpIf(greater, loop)
	t.close()
	t.ret()
}

// alongSteps emits one step of k for each register of y.
func (t *tileForm) alongSteps(y []uint8, temp uint8) {
	for s, r := range y {
		for i := range t.rows {
			m := t.x(i, s)
			if t.isa.EVEX {
				m.step = uint8(t.size)
				t.multiply(t.result(i, 0), r, inMem(m), temp+uint8(t.piece()))
				continue
			}
			x := temp + uint8(i%2)
			t.vec3(t.spread, x, 0, inMem(m))
			t.multiply(t.result(i, 0), r, inReg(x), x)
		}
	}
	for b := 0; b*5 < t.rows; b++ {
		t.opImm(add, ofGPR(tileX[b]), len(y)*t.size)
	}
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
	const count, offset = rcx, rdx
	if g.d.Dots = -1; g.pairs {
		return
	}
	g.d.Dots = g.begin("chains of neighbours by neighbours")
	loop, n := g.newLabel(), g.piece()
	sum, temp := uint8(15), uint8(14)
	g.clearVec(sum, g.isa.Bytes)
	g.load(count, field(unsafe.Offsetof(f.K)))
	g.clear(offset)
	g.align(32)
	g.place(loop)
	x := g.squares(0, 1, unsafe.Offsetof(f.X), offset)
	y := g.squares(n+1, 1, unsafe.Offsetof(f.Y), offset)
	t := &tileForm{dotGen: g}
	for p := range n {
		t.multiply(sum, x[p], inReg(y[p]), temp)
	}
	g.opImm(add, ofGPR(offset), 16)
	g.opImm(sub, ofGPR(count), n)
	g.jumpIf(greater, loop)
	g.load(rax, field(unsafe.Offsetof(f.To)))
	g.storeWhole(at(rax, 0), sum)
	g.ret()
}
