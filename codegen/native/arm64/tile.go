package arm64

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// The arm64 form of tiles. An instruction multiplies a vector by one lane of another. So rows of X
// are loaded as vectors along k, whose lanes are steps of k. There are enough registers to hold a
// pointer to each row.

// tileRow is the pointer to the first row of X, neonOffset the offset along k.
const (
	tileRow    native.GPR = 19
	tileOffset            = native.R14
)

// dotKind is a kind of element.
type dotKind struct {
	size          int
	fma, add, mul native.Op // fma, or mul and add
	byLane        native.Op // the same with one lane of a vector
}

// Kinds of elements, whose loads and stores are the same for all.
var (
	dotF32 = &dotKind{size: 4, fma: nFmla, add: nFadd, byLane: nFmlaBy}
	dotF64 = &dotKind{size: 8, fma: nFmla | wide, add: nFadd | wide, byLane: nFmlaBy | wide}
	dotI32 = &dotKind{size: 4, mul: nMul, add: nAdd, byLane: nMlaBy}
)

// dotKinds are the elements with tiles on arm64, which has no multiplication of 64-bit integer
// lanes.
var dotKinds = map[ir.DType]*dotKind{ir.Float32: dotF32, ir.Float64: dotF64, ir.Int32: dotI32, ir.Uint32: dotI32}

// Bases loads the pointers to the rows of X.
func (a *machine) Bases(t *native.TileForm) {
	t.Load(native.TileLdX, native.Field(unsafe.Offsetof(native.TileFields.LdX)))
	t.Load(tileRow, native.Field(unsafe.Offsetof(native.TileFields.X)))
	for i := 1; i < t.Rows; i++ {
		a.addIndexed(tileRow+native.GPR(i), tileRow+native.GPR(i-1), native.TileLdX, 1)
	}
	t.Clear(tileOffset)
}

// Steps emits n steps of k: as many as a vector has lanes, or one.
func (a *machine) Steps(t *native.TileForm, n int) {
	x, free := t.Spare(0), t.Spare(t.Rows)
	for i := range t.Rows {
		a.loadIndexed(x+uint8(i), n*a.dot.size, tileRow+native.GPR(i), tileOffset)
	}
	for s := range n {
		y := make([]uint8, t.Vecs) // several registers in turn, so that loads need not wait
		for j := range y {
			y[j] = free + uint8((s*t.Vecs+j)%(a.ISA.Regs-int(free)))
			t.LoadVec(y[j], a.ISA.Bytes, native.At(native.TileY, j*a.ISA.Bytes))
		}
		t.Op(native.Add, native.TileY, native.OfGPR(native.TileLdY))
		for i := range t.Rows {
			for j := range y {
				a.neon(a.dot.byLane, t.Result(i, j), y[j], x+uint8(i), s)
			}
		}
	}
	t.OpImm(native.Add, native.OfGPR(tileOffset), n*a.dot.size)
}

// AlongSteps emits one step of k for each register of y. It loads rows of X into registers from temp
// on, a vector at a time.
func (a *machine) AlongSteps(t *native.TileForm, y []uint8, temp uint8, offset native.GPR) {
	n := t.Piece()
	for p := range len(y) / n {
		for i := range t.Rows {
			x := temp + uint8(i%2)
			t.LoadVec(x, a.ISA.Bytes, native.At2(tileRow+native.GPR(i), offset, 1, p*a.ISA.Bytes))
			for l := range n {
				a.neon(a.dot.byLane, t.Result(i, 0), y[p*n+l], x, l)
			}
		}
	}
}

// Results adds the chains to the results and jumps to done. Each possible number of columns in
// the last vector has its own code.
func (a *machine) Results(t *native.TileForm, done native.Label) {
	first, whole := t.NewLabel(), t.NewLabel()
	t.Load(native.TileY, native.Field(unsafe.Offsetof(native.TileFields.Tail)))
	t.OpImm(native.Cmp, native.OfGPR(native.TilePanels), 1)
	t.JumpIf(native.Equal, whole)
	t.Set(native.TileY, uint32(t.D.Lanes))
	t.Place(whole)
	t.Flag(native.TileFirst, first)
	a.neonAdd(t, false, done)
	t.Place(first)
	a.neonAdd(t, true, done)
}

func (a *machine) neonAdd(t *native.TileForm, first bool, done native.Label) {
	sum := t.Spare(0)
	for tail := t.D.Lanes; tail > 0; tail-- {
		next := t.NewLabel()
		if tail > 1 {
			t.OpImm(native.Cmp, native.OfGPR(native.TileY), tail)
			t.JumpIf(native.NotEqual, next)
		}
		if first {
			t.ClearVec(sum, a.ISA.Bytes)
		}
		t.RowsOf(unsafe.Offsetof(native.TileFields.LdC), func() { t.Copy(native.RSI, native.TileC) }, func(i, j int, m native.Mem) {
			r, n := t.Result(i, j), t.D.Lanes
			if j == t.Vecs-1 {
				n = tail
			}
			switch {
			case !first:
				a.columns(sum, n, m, true)
				a.neon(a.dot.add, r, sum, r, 0)
			case a.dot.mul == native.OpNone: // +0 is added, too, because a chain may end at -0 by underflow
				a.neon(a.dot.add, r, sum, r, 0)
			}
			a.columns(r, n, m, false)
		})
		t.Jump(done)
		t.Place(next)
	}
}

// columns loads or stores the first n elements of a vector.
func (a *machine) columns(r uint8, n int, m native.Mem, load bool) {
	base, off := a.reach(m, a.ISA.Bytes)
	opc := uint32(0)
	if load {
		opc = 1
	}
	if n != 3 {
		a.move(n*a.dot.size, true, opc, r, base, off)
		return
	}
	a.move(2*a.dot.size, true, opc, r, base, off)
	a.addConst(x16, base, off+2*a.dot.size)
	a.lane(r, a.dot.size, 2, x16, load)
}

// rest copies columns elements of a row, fewer than a panel has, from from to to, and fills the
// rest of the panel with zeros. It changes all four registers.
func (a *machine) rest(from, to, columns, temp native.GPR) {
	next := a.NewLabel()
	a.ClearVec(0, a.ISA.Bytes)
	for v := range 2 {
		a.StoreWhole(native.At(to, v*a.ISA.Bytes), 0)
	}
	a.Place(next)
	a.LoadSize(a.dot.size, false, temp, native.At(from, 0))
	a.StoreSize(a.dot.size, native.At(to, 0), temp)
	a.OpImm(native.Add, native.OfGPR(from), a.dot.size)
	a.OpImm(native.Add, native.OfGPR(to), a.dot.size)
	a.OpImm(native.Sub, native.OfGPR(columns), 1)
	a.JumpIf(native.NotEqual, next)
}

// square4 transposes four vectors of four lanes, with four scratch registers from temp on.
func (a *machine) square4(s []uint8, temp uint8) {
	for i, o := range []native.Op{nZip1, nZip2} {
		a.neon(o, temp+uint8(2*i), s[0], s[2], 0)
		a.neon(o, temp+uint8(2*i+1), s[1], s[3], 0)
	}
	for i := range s {
		half := temp + uint8(i&^1)
		a.neon([]native.Op{nZip1, nZip2}[i%2], s[i], half, half+1, 0)
	}
}

func (a *machine) Elements(dt ir.DType) (size int, pairs bool) {
	if a.dot = dotKinds[dt]; a.dot == nil {
		return 0, false
	}
	return a.dot.size, false
}

func (a *machine) LoadWhole(r uint8, m native.Mem)  { a.LoadVec(r, a.ISA.Bytes, m) }
func (a *machine) StoreWhole(m native.Mem, r uint8) { a.StoreVec(m, a.ISA.Bytes, r) }

// Unroll: a load of X has one step of k per lane.
func (a *machine) Unroll(lanes int) int { return lanes }

func (a *machine) Multiply(_ *native.TileForm, to, x uint8, y native.RM, temp uint8) {
	if a.dot.mul == native.OpNone {
		a.neon(a.dot.fma, to, x, y.Reg, 0)
		return
	}
	a.neon(a.dot.mul, temp, x, y.Reg, 0)
	a.neon(a.dot.add, to, to, temp, 0)
}

func (a *machine) LoadPieces(in []uint8, n, row, pieces int, offset native.GPR) {
	a.Op(native.Add, native.RAX, native.OfGPR(offset))
	for p := range pieces {
		a.LoadVec(in[p*n+row], 16, native.At(native.RAX, 16*p))
	}
}

func (a *machine) Square(s []uint8, t uint8) {
	if len(s) == 4 {
		a.square4(s, t)
		return
	}
	a.neon(nZip1|wide, t, s[0], s[1], 0)
	a.neon(nZip2|wide, s[1], s[0], s[1], 0)
}

// PartMasks has nothing to do.
func (a *machine) PartMasks(_, _ native.GPR) {}

func (a *machine) PartPanel(from, to, rest native.GPR) {
	a.Copy(native.RAX, rest)
	a.rest(from, to, native.RAX, native.RCX)
}
