package native

import "unsafe"

// Registers of a tile. Each base of X serves five rows, at 0, 1, 2, 3 and 4 strides.
const (
	TileY, TileLdY, TileLdY3 = RDX, RBX, RAX
	TileLdX, TileLdX3        = r10, r11
	TileK, TilePanels        = RCX, R15
	tilePanel, TileC         = r12, R13 // start of the panel in Y and in C
)

// Field is a field of a frame.
func Field(offset uintptr) Mem { return At(RDI, int(offset)) }

var TileFields TileFrame

// TileForm is one function: a tile of rows rows by vecs vectors of columns.
type TileForm struct {
	*dotGen
	Rows, Vecs int
	acc        uint8 // number of registers for results
	Lean       bool  // elements of X are kept in registers, and vectors of Y are loaded as they are used
}

// tiles makes a function for each form.
func (g *dotGen) tiles() {
	d := g.D
	d.Rows, d.Wides = g.ISA.TileRows, []int{0, 8, 4, 4}
	if g.pairs {
		d.Rows, d.Wides = 4, nil
	}
	d.Tiles = make([][]int, d.Rows+1)
	for rows := 1; rows <= d.Rows; rows++ {
		d.Tiles[rows] = []int{-1, -1, -1, -1, -1, -1, -1, -1, -1}
		for _, vecs := range []int{1, 2, d.Wide(rows)} {
			if d.Tiles[rows][vecs] < 0 {
				d.Tiles[rows][vecs] = g.begin("a tile of %d rows by %d vectors", rows, vecs)
				(&TileForm{dotGen: g, Rows: rows, Vecs: vecs, acc: uint8(rows * vecs), Lean: vecs > 2 || rows == 1}).function()
			}
		}
	}
}

func (t *TileForm) function() {
	f := &TileFields
	panel, rest, one, done, steps := t.NewLabel(), t.NewLabel(), t.NewLabel(), t.NewLabel(), t.NewLabel()
	unroll := t.Unroll(t.D.Lanes)
	t.Load(tilePanel, Field(unsafe.Offsetof(f.Y)))
	t.Load(TileC, Field(unsafe.Offsetof(f.C)))
	t.Load(TilePanels, Field(unsafe.Offsetof(f.Panels)))
	t.Load(TileLdY, Field(unsafe.Offsetof(f.LdY)))
	t.Lea(TileLdY3, At2(TileLdY, TileLdY, 2, 0))

	t.Place(panel)
	t.open()
	t.near()
	t.Bases(t)
	t.Copy(TileY, tilePanel)
	t.Load(TileK, Field(unsafe.Offsetof(f.K)))
	t.OpImm(Sub, OfGPR(TileK), unroll)
	t.JumpIf(Less, rest)
	t.align(32)
	t.Place(steps)
	t.Steps(t, unroll)
	t.OpImm(Sub, OfGPR(TileK), unroll)
	t.JumpIf(GreaterEqual, steps)
	t.Place(rest)
	t.OpImm(Add, OfGPR(TileK), unroll)
	t.JumpIf(Equal, done)
	t.Place(one)
	t.Steps(t, 1)
	t.OpImm(Sub, OfGPR(TileK), 1)
	t.JumpIf(NotEqual, one)
	t.Place(done)
	t.close()

	t.Op(Add, tilePanel, InMem(Field(unsafe.Offsetof(f.StepY))))
	t.Op(Add, TileC, InMem(Field(unsafe.Offsetof(f.StepC))))
	t.OpImm(Sub, OfGPR(TilePanels), 1)
	t.JumpIf(NotEqual, panel)
	t.Ret()
}

func (t *TileForm) Result(row, vec int) uint8 { return uint8(row*t.Vecs + vec) }

// Spare returns a register behind the results.
func (t *TileForm) Spare(i int) uint8 { return t.acc + uint8(i) }

// open starts the chains, or continues them from Acc.
func (t *TileForm) open() {
	fresh, ready := t.NewLabel(), t.NewLabel()
	t.Flag(TileOpen, fresh)
	t.RowsOf(unsafe.Offsetof(TileFields.LdAcc), func() { t.accAt() }, func(i, j int, m Mem) {
		t.LoadWhole(t.Result(i, j), m)
	})
	t.Jump(ready)
	t.Place(fresh)
	for r := range t.acc {
		t.ClearVec(r, t.ISA.Bytes)
	}
	t.Place(ready)
}

// Flag jumps if the frame has a flag.
func (t *TileForm) Flag(f int, to Label) {
	t.Load(TileK, Field(unsafe.Offsetof(TileFields.Flags)))
	t.OpImm(And, OfGPR(TileK), f)
	t.JumpIf(NotEqual, to)
}

// RowsOf visits all vectors of a matrix, whose address base puts into rsi. It uses the registers of
// the bases of X.
func (t *TileForm) RowsOf(ld uintptr, base func(), visit func(i, j int, m Mem)) {
	const row, stride, stride3 = RSI, R8, R9
	base()
	t.Load(stride, Field(ld))
	t.Lea(stride3, At2(stride, stride, 2, 0))
	for i := range t.Rows {
		if i > 0 && i%4 == 0 {
			t.Lea(row, At2(row, stride, 4, 0))
		}
		for j := range t.Vecs {
			m := At(row, j*t.ISA.Bytes)
			switch i % 4 {
			case 1, 2:
				m.Index, m.Scale = stride, uint8(i%4)
			case 3:
				m.Index = stride3
			}
			visit(i, j, m)
		}
	}
}

// cacheLine is the number of bytes that one prefetch loads.
const cacheLine = 64

// near prefetches the memory at distance Near from the results.
func (t *TileForm) near() {
	if !t.ISA.Prefetches {
		return
	}
	f, none := &TileFields, t.NewLabel()
	t.Load(TileK, Field(unsafe.Offsetof(f.LdNear)))
	t.OpImm(Cmp, OfGPR(TileK), 0)
	t.JumpIf(Equal, none)
	t.RowsOf(unsafe.Offsetof(f.LdNear), func() {
		t.Copy(RSI, TileC)
		t.Op(Add, RSI, InMem(Field(unsafe.Offsetof(f.Near))))
	}, func(i, j int, m Mem) {
		if j*t.ISA.Bytes%cacheLine == 0 {
			t.Prefetch(m, false)
		}
	})
	t.Place(none)
}

// accAt sets rsi to the address of the panel's chains. Its distance from Acc is the panel's distance
// from the first one.
func (t *TileForm) accAt() {
	t.Copy(RSI, TileC)
	t.Op(Sub, RSI, InMem(Field(unsafe.Offsetof(TileFields.C))))
	t.Op(Add, RSI, InMem(Field(unsafe.Offsetof(TileFields.Acc))))
}

// close ends the chains, or stores them in Acc.
func (t *TileForm) close() {
	ends, done := t.NewLabel(), t.NewLabel()
	t.Flag(TileClose, ends)
	t.RowsOf(unsafe.Offsetof(TileFields.LdAcc), func() { t.accAt() }, func(i, j int, m Mem) {
		t.StoreWhole(m, t.Result(i, j))
	})
	t.Jump(done)

	t.Place(ends)
	t.Results(t, done)
	t.Place(done)
}

func ShiftOf(size int) int {
	n := 0
	for ; size > 1; size /= 2 {
		n++
	}
	return n
}
