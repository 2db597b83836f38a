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
	g.d.Load = g.walk("memory into a block", true)
	g.d.Store = g.walk("a block into memory", false)
}

func (g *dotGen) walk(name string, load bool) int {
	var f WalkFrame
	var p WalkPiece
	const memory, block, offsets, rows, list, count, from, to, bytes, there = rsi, rdx, r8, r9, r10, r11, rax, rbx, rcx, r12
	begin := g.begin("%s", name)
	row, piece, next := g.newLabel(), g.newLabel(), g.newLabel()
	g.load(block, field(unsafe.Offsetof(f.Block)))
	g.load(offsets, field(unsafe.Offsetof(f.Offsets)))
	g.load(rows, field(unsafe.Offsetof(f.Rows)))
	g.place(row)
	g.load(memory, at(offsets, 0))
	g.op(add, memory, inMem(field(unsafe.Offsetof(f.Memory))))
	g.load(list, field(unsafe.Offsetof(f.Pieces)))
	g.load(count, field(unsafe.Offsetof(f.Count)))
	g.align(32)
	g.place(piece)
	source, target := gpr(memory), gpr(block)
	inSource, inTarget := unsafe.Offsetof(p.Memory), unsafe.Offsetof(p.Block)
	if !load {
		source, target, inSource, inTarget = target, source, inTarget, inSource
	}
	g.load(from, at(list, int(inSource)))
	g.op(add, from, ofGPR(source))
	g.load(to, at(list, int(inTarget)))
	g.op(add, to, ofGPR(target))
	g.load(bytes, at(list, int(unsafe.Offsetof(p.Bytes))))
	for size := g.isa.Bytes; size >= 16; size /= 2 {
		g.line(size, size == g.isa.Bytes, from, to, bytes, next)
	}
	smaller := g.newLabel()
	g.opImm(cmp, ofGPR(bytes), 8)
	g.jumpIf(less, smaller)
	g.load(there, mem{base: from, index: bytes, scale: 1, disp: -8})
	g.load(from, at(from, 0))
	g.store(at(to, 0), from)
	g.store(mem{base: to, index: bytes, scale: 1, disp: -8}, there)
	g.jump(next)
	g.place(smaller)
	if g.size == 4 {
		g.loadSize(4, false, from, at(from, 0))
		g.storeSize(4, at(to, 0), from)
	}
	g.place(next)
	g.opImm(add, ofGPR(list), int(unsafe.Sizeof(p)))
	g.opImm(sub, ofGPR(count), 1)
	g.jumpIf(notEqual, piece)
	g.op(add, block, inMem(field(unsafe.Offsetof(f.LdBlock))))
	g.opImm(add, ofGPR(offsets), 8)
	g.opImm(sub, ofGPR(rows), 1)
	g.jumpIf(notEqual, row)
	g.ret()
	return begin
}

// line copies pieces of at least size bytes and jumps to next: whole vectors, and then the last size
// bytes, which may overlap them. For shorter pieces it falls through. Pieces of two or more vectors
// occur only if many is set.
func (g *dotGen) line(size int, many bool, from, to, bytes gpr, next label) {
	shorter := g.newLabel()
	last := mem{base: from, index: bytes, scale: 1, disp: int32(-size)}
	g.opImm(cmp, ofGPR(bytes), size)
	g.jumpIf(less, shorter)
	g.loadVec(0, size, last)
	if !many {
		g.loadVec(1, size, at(from, 0))
		g.storeVec(at(to, 0), size, 1)
	} else {
		loop, rest := g.newLabel(), g.newLabel()
		g.opImm(sub, ofGPR(bytes), size)
		g.jumpIf(equal, rest)
		g.place(loop)
		g.loadVec(1, size, at(from, 0))
		g.storeVec(at(to, 0), size, 1)
		g.opImm(add, ofGPR(from), size)
		g.opImm(add, ofGPR(to), size)
		g.opImm(sub, ofGPR(bytes), size)
		g.jumpIf(greater, loop)
		g.place(rest)
		g.opImm(add, ofGPR(bytes), size)
	}
	last.base = to
	g.storeVec(last, size, 0)
	g.jump(next)
	g.place(shorter)
}
