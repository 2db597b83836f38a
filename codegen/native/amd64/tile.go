package amd64

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// The parts of contractions in which vectors are multiplied: elements of X are spread over a vector,
// and vectors of Y have one element per column.

var tileX = [...]native.GPR{native.RSI, native.R8, native.R9}

const tileUnroll = 4

// dotKind is a kind of element.
type dotKind struct {
	size                               int
	fma, add, mul                      native.Op // fma, or mul and add
	get, put, spread, getPart, putPart native.Op
}

var (
	dotF32 = &dotKind{4, vfmadd231ps, vaddps, native.OpNone, vmovups, vmovupsTo, vbroadcastss, vmaskmovps, vmaskmovpsTo}
	dotF64 = &dotKind{8, vfmadd231pd, vaddpd, native.OpNone, vmovupd, vmovupdTo, vbroadcastsd, vmaskmovpd, vmaskmovpdTo}
	dotI32 = &dotKind{4, native.OpNone, vpaddd, vpmulld, vmovups, vmovupsTo, vbroadcastss, vmaskmovps, vmaskmovpsTo}
	dotI64 = &dotKind{8, native.OpNone, vpaddq, vpmullq, vmovupd, vmovupdTo, vbroadcastsd, vmaskmovpd, vmaskmovpdTo}
)

// dotKinds are the elements for which there are tiles. Integer sums and products wrap, so signed and
// unsigned use the same code, and narrower integers are computed in wider ones.
var dotKinds = map[ir.DType]*dotKind{
	ir.Float32: dotF32, ir.Float64: dotF64,
	ir.Int32: dotI32, ir.Uint32: dotI32, ir.Int64: dotI64, ir.Uint64: dotI64,
}

// Elements makes a dtype the one of the contraction.
func (a *machine) Elements(dt ir.DType) (size int, pairs bool) {
	kind := dotKinds[dt]
	if kind == nil {
		return 0, false
	}
	a.dot = kind
	return kind.size, a.pairs()
}

// pairs: AVX2 makes products of 64 bits of three products of 32 bits.
func (a *machine) pairs() bool { return a.dot.mul == vpmullq && !a.evex }

// vec3 emits an instruction on whole vectors.
func (a *machine) vec3(o native.Op, to, x uint8, y native.RM) {
	a.vector(o, a.ISA.Bytes, args{reg: to, v: x, RM: y, imm: native.NoImm})
}

func (a *machine) vec3i(o native.Op, to, x uint8, y native.RM, imm int16) {
	a.vector(o, a.ISA.Bytes, args{reg: to, v: x, RM: y, imm: imm})
}

func (a *machine) LoadWhole(r uint8, m native.Mem)  { a.vec3(a.dot.get, r, 0, native.InMem(m)) }
func (a *machine) StoreWhole(m native.Mem, r uint8) { a.vec3(a.dot.put, r, 0, native.InMem(m)) }

// Unroll is the number of steps of k in the main loop.
func (a *machine) Unroll(int) int { return tileUnroll }

// Steps emits n steps of k.
func (a *machine) Steps(t *native.TileForm, n int) {
	for s := range n {
		a.step(t, s)
	}
	a.advance(t, n)
}

// Bases loads the pointers to the rows of X.
func (a *machine) Bases(t *native.TileForm) {
	f := &native.TileFields
	t.Load(native.TileLdX, native.Field(unsafe.Offsetof(f.LdX)))
	t.Lea(native.TileLdX3, native.At2(native.TileLdX, native.TileLdX, 2, 0))
	t.Load(tileX[0], native.Field(unsafe.Offsetof(f.X)))
	for b := 1; b*5 < t.Rows; b++ {
		t.Lea(tileX[b], native.At2(tileX[b-1], native.TileLdX, 4, 0))
		t.Op(native.Add, tileX[b], native.OfGPR(native.TileLdX))
	}
}

// advance moves the pointers on by n steps of k.
func (a *machine) advance(t *native.TileForm, n int) {
	for b := 0; b*5 < t.Rows; b++ {
		t.OpImm(native.Add, native.OfGPR(tileX[b]), n*a.dot.size)
	}
	if n == 1 {
		t.Op(native.Add, native.TileY, native.OfGPR(native.TileLdY))
	} else {
		t.Lea(native.TileY, native.At2(native.TileY, native.TileLdY, tileUnroll, 0))
	}
}

// x is an element of a row, y a vector, s steps of k ahead.
func (a *machine) x(t *native.TileForm, row, s int) native.Mem {
	m := native.At(tileX[row/5], s*a.dot.size)
	switch row % 5 {
	case 1, 2, 4:
		m.Index, m.Scale = native.TileLdX, uint8(row%5)
	case 3:
		m.Index = native.TileLdX3
	}
	return m
}

func (a *machine) y(t *native.TileForm, vec, s int) native.Mem {
	m := native.At(native.TileY, vec*a.ISA.Bytes)
	switch s {
	case 1, 2:
		m.Index, m.Scale = native.TileLdY, uint8(s)
	case 3:
		m.Index = native.TileLdY3
	}
	return m
}

// step emits one step of k. Tiles of many rows hold vectors of Y in registers and broadcast one
// element of X after another; tiles of few rows do the opposite.
func (a *machine) step(t *native.TileForm, s int) {
	if t.Lean {
		for i := range t.Rows {
			a.vec3(a.dot.spread, t.Spare(i), 0, native.InMem(a.x(t, i, s)))
		}
		for j := range t.Vecs {
			y, temp := native.InMem(a.y(t, j, s)), t.Spare(t.Rows)
			if t.Rows > 1 && a.dot.mul == native.OpNone || a.pairs() {
				a.vec3(a.dot.get, t.Spare(t.Rows), 0, y)
				y = native.InReg(temp)
				temp++
			}
			for i := range t.Rows {
				a.Multiply(t, t.Result(i, j), t.Spare(i), y, temp)
			}
		}
		return
	}
	for j := range t.Vecs {
		a.vec3(a.dot.get, t.Spare(j), 0, native.InMem(a.y(t, j, s)))
	}
	for i := range t.Rows {
		x := t.Spare(t.Vecs)
		temp := x + 1
		if a.dot.mul == native.OpNone && i%2 == 1 {
			x++ // the other of two registers, so that broadcasts need not wait
		}
		if t.Vecs == 1 && a.evex {
			m := a.x(t, i, s)
			m.Step = uint8(a.dot.size)
			a.Multiply(t, t.Result(i, 0), t.Spare(0), native.InMem(m), temp)
			continue
		}
		a.vec3(a.dot.spread, x, 0, native.InMem(a.x(t, i, s)))
		for j := range t.Vecs {
			a.Multiply(t, t.Result(i, j), x, native.InReg(t.Spare(j)), temp)
		}
	}
}

// Multiply adds x*y to a result.
func (a *machine) Multiply(t *native.TileForm, to, x uint8, y native.RM, temp uint8) {
	switch {
	case a.dot.mul == native.OpNone:
		a.vec3(a.dot.fma, to, x, y)
	case a.pairs():
		a.multiplyPairs(t, to, x, y, temp)
	default:
		a.vec3(a.dot.mul, temp, x, y)
		a.vec3(a.dot.add, to, to, native.InReg(temp))
	}
}

// multiplyPairs adds a product of 64-bit integers if only the product of the lower halves is an
// instruction. The cross products are shifted by 32 bits.
func (a *machine) multiplyPairs(t *native.TileForm, to, x uint8, y native.RM, temp uint8) {
	a.vec3i(vpsrlq, temp, 0, native.InReg(x), 32)
	a.vec3(vpmuludq, temp, temp, y)
	a.vec3i(vpsrlq, temp+1, 0, y, 32)
	a.vec3(vpmuludq, temp+1, temp+1, native.InReg(x))
	a.vec3(vpaddq, temp, temp, native.InReg(temp+1))
	a.vec3i(vpsllq, temp, 0, native.InReg(temp), 32)
	a.vec3(vpaddq, to, to, native.InReg(temp))
	a.vec3(vpmuludq, temp, x, y)
	a.vec3(vpaddq, to, to, native.InReg(temp))
}

// AlongSteps emits one step of k for each register of y.
func (a *machine) AlongSteps(t *native.TileForm, y []uint8, temp uint8, _ native.GPR) {
	for s, r := range y {
		for i := range t.Rows {
			m := a.x(t, i, s)
			if a.evex {
				m.Step = uint8(a.dot.size)
				a.Multiply(t, t.Result(i, 0), r, native.InMem(m), temp+uint8(t.Piece()))
				continue
			}
			x := temp + uint8(i%2)
			a.vec3(a.dot.spread, x, 0, native.InMem(m))
			a.Multiply(t, t.Result(i, 0), r, native.InReg(x), x)
		}
	}
	for b := 0; b*5 < t.Rows; b++ {
		t.OpImm(native.Add, native.OfGPR(tileX[b]), len(y)*a.dot.size)
	}
}
