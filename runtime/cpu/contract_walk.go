package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
)

// walk is a group of dims, the last one innermost, along which a side of a contraction or its
// results are stored, as windows of images are. Strides are in elements.
type walk struct {
	rank   int
	dims   [runtime.MaxRank]int64
	stride [runtime.MaxRank]int64
}

// step returns the stride between neighbours along the innermost dim.
func (w *walk) step() int64 { return w.stride[w.rank-1] }

// walker is a position of a walk. left is the number of positions until the innermost dim ends.
type walker struct {
	*walk
	at           [runtime.MaxRank]int64
	offset, left int64
}

func (w *walk) from(i int64) walker {
	r := walker{walk: w}
	for d := w.rank - 1; d > 0; d-- {
		r.at[d], i = i%w.dims[d], i/w.dims[d]
		r.offset += r.at[d] * w.stride[d]
	}
	r.at[0] = i
	r.offset += i * w.stride[0]
	r.left = w.dims[w.rank-1] - r.at[w.rank-1]
	return r
}

// on moves n positions further; n is at most left.
func (r *walker) on(n int64) {
	d := r.rank - 1
	r.offset += n * r.stride[d]
	if r.left -= n; r.left > 0 {
		return
	}
	r.left = r.dims[d]
	r.offset -= r.left * r.stride[d]
	for d--; d >= 0; d-- {
		r.offset += r.stride[d]
		if r.at[d]++; r.at[d] < r.dims[d] {
			return
		}
		r.offset -= r.dims[d] * r.stride[d]
		r.at[d] = 0
	}
}

// walkPieces bounds how many positions of the inner group are walked in one pass, and how many of
// the outer group.
const walkPieces = 256

// pieces splits positions [i, i+n) into runs that are contiguous in both layouts; n is at most
// walkPieces. A run also ends where a row of a panel ends: panels have width elements per row and
// are panel elements apart. size is the bytes of an element.
func (w *walk) pieces(list *[walkPieces]native.WalkPiece, i, n, width, panel, size int64) int64 {
	count := int64(0)
	for r, at := w.from(i), int64(0); at < n; count++ {
		some := min(n-at, r.left, width-at%width)
		list[count] = native.WalkPiece{Memory: r.offset * size, Block: (at/width*panel + at%width) * size, Bytes: some * size}
		at += some
		r.on(some)
	}
	return count
}

// walked is memory that two groups of dims walk over.
type walked struct {
	base         unsafe.Pointer
	size         int64
	batch        []int64 // strides
	outer, inner walk
	operand      int
}

// walkedOf returns an operand as the dims of a view walk over it.
func (d *dotRun) walkedOf(i int, r *ready, v *dotView, slot int) walked {
	a := &r.l.Args[slot]
	size := int64(r.p.kernel.Operands[slot].DT.Size())
	w := walked{base: elementOf(a, size), size: size, batch: d.strides(i, r, a), operand: slot}
	w.outer.along(v, a, v.lead, v.innerAt)
	w.inner.along(v, a, v.innerAt, v.rank)
	return w
}

// along sets w to a walk along dims [from, end) of a view.
func (w *walk) along(v *dotView, a *runtime.Access, from, end int) {
	w.rank = end - from
	for d := range w.rank {
		w.dims[d], w.stride[d] = v.size[from+d], v.stride(a, from+d)
	}
}

// walkOver is one pass over points [o0, o1) by [i0, i1) of a batch, to or from a block whose rows
// are ld elements apart, or are rows of panels.
type walkOver struct {
	batch, o0, o1, i0, i1 int64
	block                 unsafe.Pointer
	ld, width, panel      int64
}

// load copies memory into a block.
func (w *walked) load(c *contraction, f *dotCode, o *walkOver) { w.pass(c, f, o, true) }

// store copies a block into memory.
func (w *walked) store(c *contraction, f *dotCode, o *walkOver) { w.pass(c, f, o, false) }

// panelsLoaded counts the calls of walked.panels.
var panelsLoaded atomic.Int64

// panels is load into panels; the last panel is filled up with zeros.
func (w *walked) panels(c *contraction, f *dotCode, o *walkOver) {
	panelsLoaded.Add(1)
	w.pass(c, f, o, true)
	n := o.i1 - o.i0
	rest := n % o.width
	if rest == 0 {
		return
	}
	last, rows, bytes := unsafe.Add(o.block, (n/o.width*o.panel+rest)*w.size), o.o1-o.o0, (o.width-rest)*w.size
	zero(last, o.ld*w.size, rows, bytes)
	if tape := c.tape; tape != nil {
		tape.zero(last, o.ld*w.size, rows, bytes)
	}
}

func (w *walked) pass(c *contraction, f *dotCode, o *walkOver, load bool) {
	memory := unsafe.Add(w.base, c.offset(w.batch, o.batch)*w.size)
	w.copy(memory, f, o, load)
	if tape := c.tape; tape != nil {
		tape.walk(*w, memory, f, *o, load)
	}
}

// copy copies between the block and a batch's memory.
func (w *walked) copy(memory unsafe.Pointer, f *dotCode, o *walkOver, load bool) {
	var pieces [walkPieces]native.WalkPiece
	var offsets [walkPieces]int64
	frame := native.WalkFrame{Memory: memory, LdBlock: o.ld * w.size, Offsets: unsafe.Pointer(&offsets), Pieces: unsafe.Pointer(&pieces)}
	for i := o.i0; i < o.i1; i += walkPieces {
		n, at := min(walkPieces, o.i1-i), i-o.i0
		frame.Count = w.inner.pieces(&pieces, i, n, o.width, o.panel, w.size)
		column := unsafe.Add(o.block, (at/o.width*o.panel+at%o.width)*w.size)
		some := min(walkPieces, callBytes/(n*w.size))
		r := w.outer.from(o.o0)
		for row := o.o0; row < o.o1; row += frame.Rows {
			frame.Block, frame.Rows = unsafe.Add(column, (row-o.o0)*frame.LdBlock), min(some, o.o1-row)
			for k := range frame.Rows {
				offsets[k] = r.offset * w.size
				r.on(1)
			}
			switch step := w.inner.step(); {
			case f == nil || f.Load < 0 || step != 1:
				copyPieces(&frame, step, w.size, load)
			case load:
				f.call(f.Load, unsafe.Pointer(&frame), machine.KeepMXCSR)
			default:
				f.call(f.Store, unsafe.Pointer(&frame), machine.KeepMXCSR)
			}
		}
	}
}

// copyPieces does in Go the work of the machine code, also for elements that are step apart. A
// switch is used because a table of functions would make the frames escape to the heap.
func copyPieces(f *native.WalkFrame, step, size int64, load bool) {
	switch size {
	case 1:
		copyLines[uint8](f, step, load)
	case 2:
		copyLines[uint16](f, step, load)
	case 4:
		copyLines[uint32](f, step, load)
	case 8:
		copyLines[uint64](f, step, load)
	}
}

func copyLines[T rawBits](f *native.WalkFrame, step int64, load bool) {
	size := int64(unsafe.Sizeof(T(0)))
	offsets, pieces := unsafe.Slice((*int64)(f.Offsets), f.Rows), unsafe.Slice((*native.WalkPiece)(f.Pieces), f.Count)
	for i, offset := range offsets {
		memory, block := unsafe.Add(f.Memory, offset), unsafe.Add(f.Block, int64(i)*f.LdBlock)
		for _, p := range pieces {
			m, b, n := unsafe.Add(memory, p.Memory), unsafe.Slice((*T)(unsafe.Add(block, p.Block)), p.Bytes/size), p.Bytes/size
			switch {
			case step == 1 && load:
				copy(b, unsafe.Slice((*T)(m), n))
			case step == 1:
				copy(unsafe.Slice((*T)(m), n), b)
			case load:
				for j := range b {
					b[j] = *(*T)(unsafe.Add(m, int64(j)*step*size))
				}
			default:
				for j := range b {
					*(*T)(unsafe.Add(m, int64(j)*step*size)) = b[j]
				}
			}
		}
	}
}
