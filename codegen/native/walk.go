package native

import "unsafe"

// WalkFrame describes a copy between a block and memory over which several dims of a contraction's
// side run. Each of Rows rows has Count pieces. All distances are in bytes.
type WalkFrame struct {
	Memory, Block unsafe.Pointer
	LdBlock       int64          // from row to row of the block
	Offsets       unsafe.Pointer // *int64: the offset of each row in memory
	Rows          int64
	Pieces        unsafe.Pointer // *WalkPiece: the same pieces for each row
	Count         int64
}

// WalkPiece is a contiguous piece of one row, with a whole number of elements.
type WalkPiece struct{ Memory, Block, Bytes int64 }

// walks makes the functions of WalkFrame: from memory to the block, and back.
func (g *dotGen) walks() {
	g.D.Load = g.walk("memory into a block", true)
	g.D.Store = g.walk("a block into memory", false)
}

func (g *dotGen) walk(name string, load bool) int {
	var f WalkFrame
	var p WalkPiece
	const memory, block, offsets, rows, list, count, from, to, bytes, there = RSI, RDX, R8, R9, r10, r11, RAX, RBX, RCX, r12
	begin := g.begin("%s", name)
	row, piece, next := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.Load(block, Field(unsafe.Offsetof(f.Block)))
	g.Load(offsets, Field(unsafe.Offsetof(f.Offsets)))
	g.Load(rows, Field(unsafe.Offsetof(f.Rows)))
	g.Place(row)
	g.Load(memory, At(offsets, 0))
	g.Op(Add, memory, InMem(Field(unsafe.Offsetof(f.Memory))))
	g.Load(list, Field(unsafe.Offsetof(f.Pieces)))
	g.Load(count, Field(unsafe.Offsetof(f.Count)))
	g.align(32)
	g.Place(piece)
	source, target := GPR(memory), GPR(block)
	inSource, inTarget := unsafe.Offsetof(p.Memory), unsafe.Offsetof(p.Block)
	if !load {
		source, target, inSource, inTarget = target, source, inTarget, inSource
	}
	g.Load(from, At(list, int(inSource)))
	g.Op(Add, from, OfGPR(source))
	g.Load(to, At(list, int(inTarget)))
	g.Op(Add, to, OfGPR(target))
	g.Load(bytes, At(list, int(unsafe.Offsetof(p.Bytes))))
	for size := g.ISA.Bytes; size >= 16; size /= 2 {
		g.line(size, size == g.ISA.Bytes, from, to, bytes, next)
	}
	smaller := g.NewLabel()
	g.OpImm(Cmp, OfGPR(bytes), 8)
	g.JumpIf(Less, smaller)
	g.Load(there, Mem{Base: from, Index: bytes, Scale: 1, Disp: -8})
	g.Load(from, At(from, 0))
	g.Store(At(to, 0), from)
	g.Store(Mem{Base: to, Index: bytes, Scale: 1, Disp: -8}, there)
	g.Jump(next)
	g.Place(smaller)
	if g.D.Size == 4 {
		g.LoadSize(4, false, from, At(from, 0))
		g.StoreSize(4, At(to, 0), from)
	}
	g.Place(next)
	g.OpImm(Add, OfGPR(list), int(unsafe.Sizeof(p)))
	g.OpImm(Sub, OfGPR(count), 1)
	g.JumpIf(NotEqual, piece)
	g.Op(Add, block, InMem(Field(unsafe.Offsetof(f.LdBlock))))
	g.OpImm(Add, OfGPR(offsets), 8)
	g.OpImm(Sub, OfGPR(rows), 1)
	g.JumpIf(NotEqual, row)
	g.Ret()
	return begin
}

// line copies pieces of at least size bytes and jumps to next: whole vectors, and then the last size
// bytes, which may overlap them. For shorter pieces it falls through. Pieces of two or more vectors
// occur only if many is set.
func (g *dotGen) line(size int, many bool, from, to, bytes GPR, next Label) {
	shorter := g.NewLabel()
	last := Mem{Base: from, Index: bytes, Scale: 1, Disp: int32(-size)}
	g.OpImm(Cmp, OfGPR(bytes), size)
	g.JumpIf(Less, shorter)
	g.LoadVec(0, size, last)
	if !many {
		g.LoadVec(1, size, At(from, 0))
		g.StoreVec(At(to, 0), size, 1)
	} else {
		loop, rest := g.NewLabel(), g.NewLabel()
		g.OpImm(Sub, OfGPR(bytes), size)
		g.JumpIf(Equal, rest)
		g.Place(loop)
		g.LoadVec(1, size, At(from, 0))
		g.StoreVec(At(to, 0), size, 1)
		g.OpImm(Add, OfGPR(from), size)
		g.OpImm(Add, OfGPR(to), size)
		g.OpImm(Sub, OfGPR(bytes), size)
		g.JumpIf(Greater, loop)
		g.Place(rest)
		g.OpImm(Add, OfGPR(bytes), size)
	}
	last.Base = to
	g.StoreVec(last, size, 0)
	g.Jump(next)
	g.Place(shorter)
}
