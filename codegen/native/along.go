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
	case !g.isa.EVEX:
		most = 4
	}
	g.d.along = []int{-1}
	for rows := 1; rows <= most; rows++ {
		g.d.along = append(g.d.along, g.begin("%d rows by columns along k", rows))
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
	t.opImm(add, ofGPR(offset), len(y)*t.size)
	t.opImm(sub, ofGPR(tileK), len(y))
	t.jumpIf(greater, loop)
	t.close()
	t.ret()
}
