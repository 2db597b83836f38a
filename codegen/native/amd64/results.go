package amd64

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
)

// Results of tiles, of which the last vector may be partial.

// Results adds the chains to the results, or stores them as such, and jumps to done.
func (a *machine) Results(t *native.TileForm, done native.Label) {
	first := t.NewLabel()
	a.tailMask(t)
	t.Flag(native.TileFirst, first)
	a.visitResults(t, func(r uint8, m native.Mem, masked bool) {
		a.addMemory(t, r, m, masked)
		a.storeResult(t, r, m, masked)
	}, done)
	t.Place(first)
	zero := t.Spare(0)
	if a.dot.mul == native.OpNone { // +0 is added, too, because a chain may end at -0 by underflow
		a.vec3(vpxor, zero, zero, native.InReg(zero))
	}
	a.visitResults(t, func(r uint8, m native.Mem, masked bool) {
		if a.dot.mul == native.OpNone {
			a.vec3(a.dot.add, r, r, native.InReg(zero))
		}
		a.storeResult(t, r, m, masked)
	}, done)
}

// tileMask is the mask of the last vector: k1, or the register behind spare(0).
const tileMask = 1

// tailMask makes the mask: all lanes, except in the last panel.
func (a *machine) tailMask(t *native.TileForm) {
	if !a.evex {
		return
	}
	set := t.NewLabel()
	a.vector(kxnorw, 16, args{reg: tileMask, v: tileMask, RM: native.InReg(tileMask), imm: native.NoImm})
	t.OpImm(native.Cmp, native.OfGPR(native.TilePanels), 1)
	t.JumpIf(native.NotEqual, set)
	t.Load(native.TileK, native.Field(unsafe.Offsetof(native.TileFields.Tail)))
	t.Set(native.TileY, 1<<32-1)
	a.bzhi(native.TileY, native.TileY, native.TileK)
	a.vector(kmovwR, 16, args{reg: tileMask, RM: native.OfGPR(native.TileY), imm: native.NoImm})
	t.Place(set)
}

// visitResults visits the vectors that the tile writes. Without mask registers, separate code writes a
// last vector with fewer columns.
func (a *machine) visitResults(t *native.TileForm, visit func(r uint8, m native.Mem, masked bool), done native.Label) {
	rows := func(masked bool) {
		t.RowsOf(unsafe.Offsetof(native.TileFields.LdC), func() { t.Copy(native.RSI, native.TileC) }, func(i, j int, m native.Mem) {
			visit(t.Result(i, j), m, masked && j == t.Vecs-1)
		})
	}
	if a.evex {
		rows(true)
		t.Jump(done)
		return
	}
	whole := t.NewLabel()
	t.OpImm(native.Cmp, native.OfGPR(native.TilePanels), 1)
	t.JumpIf(native.NotEqual, whole)
	t.Load(native.TileK, native.Field(unsafe.Offsetof(native.TileFields.Tail)))
	t.OpImm(native.Cmp, native.OfGPR(native.TileK), t.D.Lanes)
	t.JumpIf(native.Equal, whole)
	t.Lea(native.TileY, a.tailMasks())
	t.Shift(native.Shl, true, native.TileK, native.ShiftOf(a.dot.size))
	t.Op(native.Sub, native.TileY, native.OfGPR(native.TileK))
	a.vec3(a.dot.get, t.Spare(1), 0, native.InMem(native.At(native.TileY, 2*a.ISA.Bytes)))
	rows(true)
	t.Jump(done)
	t.Place(whole)
	rows(false)
	t.Jump(done)
}

// maskBytes are two vectors with all bits set, followed by two with none.
func maskBytes(lanes, size int) []byte {
	b := make([]byte, 4*lanes*size)
	for i := range 2 * lanes * size {
		b[i] = 0xff
	}
	return b
}

// tailMasks are the masks of AVX2, placed among the constants once.
func (a *machine) tailMasks() native.Mem {
	if !a.masked {
		a.masksAt, a.masked = a.Data(maskBytes(a.ISA.Bytes/a.dot.size, a.dot.size)), true
	}
	return a.masksAt
}

// addMemory adds the memory's contents to a result.
func (a *machine) addMemory(t *native.TileForm, r uint8, m native.Mem, masked bool) {
	switch {
	case !masked:
		a.vec3(a.dot.add, r, r, native.InMem(m))
	case a.evex:
		a.vector(a.dot.add, a.ISA.Bytes, args{reg: r, v: r, RM: native.InMem(m), imm: native.NoImm, k: tileMask})
	default:
		a.vec3(a.dot.getPart, t.Spare(0), t.Spare(1), native.InMem(m))
		a.vec3(a.dot.add, r, r, native.InReg(t.Spare(0)))
	}
}

func (a *machine) storeResult(t *native.TileForm, r uint8, m native.Mem, masked bool) {
	switch {
	case !masked:
		a.vec3(a.dot.put, r, 0, native.InMem(m))
	case a.evex:
		a.vector(a.dot.put, a.ISA.Bytes, args{reg: r, RM: native.InMem(m), imm: native.NoImm, k: tileMask})
	default:
		a.vec3(a.dot.putPart, r, t.Spare(1), native.InMem(m))
	}
}
