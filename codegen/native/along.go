package native

import "unsafe"

// alongs writes tiles of columns that lie along k: squares of y are transposed in
// registers on the way to the chains, and written nowhere. Of few rows, that takes less
// time than packing.
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
	temp := t.acc + uint8(len(y)) + 1 // what squares left behind is free
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

// alongSteps is as many steps of k as y has registers, each of which is that of a step.
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

// DotsFrame says what is multiplied: each lane is a chain of its own, of K neighbours of X
// by as many of Y, from +0. K is a multiple of the elements in 16 bytes. There are as many
// of both as a vector has lanes, of which several may be the same. To gets a vector.
type DotsFrame struct {
	X, Y [16]unsafe.Pointer
	To   unsafe.Pointer
	K    int64
}

// dots writes the function of DotsFrame: of one result that is a long sum, blocks of k are
// lanes, so that no step waits for the one before.
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
