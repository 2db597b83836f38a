package contract

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
)

// Walk is memory that two groups of dims walk over.
type Walk struct {
	Base         unsafe.Pointer
	Batch        []int64 // strides
	Outer, Inner Dims
	Operand      int
}

// Dims is a group of dims, the last one innermost, along which a side of a contraction or its
// results are stored, as windows of images are. Strides are in elements.
type Dims struct {
	Rank   int
	Size   [runtime.MaxRank]int64
	Stride [runtime.MaxRank]int64
}

// step returns the stride between neighbours along the innermost dim.
func (w *Dims) step() int64 { return w.Stride[w.Rank-1] }

// walker is a position of a walk. left is the number of positions until the innermost dim ends.
type walker struct {
	*Dims
	at           [runtime.MaxRank]int64
	offset, left int64
}

func (w *Dims) from(i int64) walker {
	r := walker{Dims: w}
	for d := w.Rank - 1; d > 0; d-- {
		r.at[d], i = i%w.Size[d], i/w.Size[d]
		r.offset += r.at[d] * w.Stride[d]
	}
	r.at[0] = i
	r.offset += i * w.Stride[0]
	r.left = w.Size[w.Rank-1] - r.at[w.Rank-1]
	return r
}

// on moves n positions further; n is at most left.
func (r *walker) on(n int64) {
	d := r.Rank - 1
	r.offset += n * r.Stride[d]
	if r.left -= n; r.left > 0 {
		return
	}
	r.left = r.Size[d]
	r.offset -= r.left * r.Stride[d]
	for d--; d >= 0; d-- {
		r.offset += r.Stride[d]
		if r.at[d]++; r.at[d] < r.Size[d] {
			return
		}
		r.offset -= r.Size[d] * r.Stride[d]
		r.at[d] = 0
	}
}

// walkPieces bounds how many positions of the inner group are walked in one pass, and how many of
// the outer group.
const walkPieces = 256

// pieces splits positions [i, i+n) into runs that are contiguous in both layouts; n is at most
// walkPieces. A run also ends where a row of a panel ends: panels have width elements per row and
// are panel elements apart. size is the bytes of an element.
func (w *Dims) pieces(list *[walkPieces]native.WalkPiece, i, n, width, panel, size int64) int64 {
	count := int64(0)
	for r, at := w.from(i), int64(0); at < n; count++ {
		some := min(n-at, r.left, width-at%width)
		list[count] = native.WalkPiece{Memory: r.offset * size, Block: (at/width*panel + at%width) * size, Bytes: some * size}
		at += some
		r.on(some)
	}
	return count
}

// walkOver is one pass over points [o0, o1) by [i0, i1) of a batch, to or from a block whose rows
// are ld elements apart, or are rows of panels.
type walkOver struct {
	batch, o0, o1, i0, i1 int64
	block                 unsafe.Pointer
	ld, width, panel      int64
}

// load copies memory into a block.
func (w *Walk) load(c *Contraction, o *walkOver) { w.pass(c, o, true) }

// store copies a block into memory.
func (w *Walk) store(c *Contraction, o *walkOver) { w.pass(c, o, false) }

// PanelsLoaded counts the sides that were copied straight into panels, for tests.
var PanelsLoaded atomic.Int64

// panels is load into panels; the last panel is filled up with zeros.
func (w *Walk) panels(c *Contraction, o *walkOver) {
	PanelsLoaded.Add(1)
	w.pass(c, o, true)
	n, size := o.i1-o.i0, int64(c.DT.Size())
	rest := n % o.width
	if rest == 0 {
		return
	}
	last, rows, bytes := unsafe.Add(o.block, (n/o.width*o.panel+rest)*size), o.o1-o.o0, (o.width-rest)*size
	zero(last, o.ld*size, rows, bytes)
	if c.Tape != nil {
		c.recordZero(last, o.ld*size, rows, bytes)
	}
}

func (w *Walk) pass(c *Contraction, o *walkOver, load bool) {
	size := int64(c.DT.Size())
	memory := unsafe.Add(w.Base, c.offset(w.Batch, o.batch)*size)
	w.copy(memory, c.code, size, o, load)
	if c.Tape != nil {
		w.record(c, memory, *o, load)
	}
}

// copy copies elements of size bytes between the block and a batch's memory.
func (w *Walk) copy(memory unsafe.Pointer, f *functions, size int64, o *walkOver, load bool) {
	var pieces [walkPieces]native.WalkPiece
	var offsets [walkPieces]int64
	frame := native.WalkFrame{Memory: memory, LdBlock: o.ld * size, Offsets: unsafe.Pointer(&offsets), Pieces: unsafe.Pointer(&pieces)}
	for i := o.i0; i < o.i1; i += walkPieces {
		n, at := min(walkPieces, o.i1-i), i-o.i0
		frame.Count = w.Inner.pieces(&pieces, i, n, o.width, o.panel, size)
		column := unsafe.Add(o.block, (at/o.width*o.panel+at%o.width)*size)
		some := min(walkPieces, callBytes/(n*size))
		r := w.Outer.from(o.o0)
		for row := o.o0; row < o.o1; row += frame.Rows {
			frame.Block, frame.Rows = unsafe.Add(column, (row-o.o0)*frame.LdBlock), min(some, o.o1-row)
			for k := range frame.Rows {
				offsets[k] = r.offset * size
				r.on(1)
			}
			switch step := w.Inner.step(); {
			case f == nil || f.Load < 0 || step != 1:
				copyPieces(&frame, step, size, load)
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

func copyLines[T uint8 | uint16 | uint32 | uint64](f *native.WalkFrame, step int64, load bool) {
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
