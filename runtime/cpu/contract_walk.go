package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
)

// walk is a group of dims, the last one innermost, that a side of a contraction or its
// results lie along in memory, as windows of images do. Steps are in elements.
type walk struct {
	rank   int
	dims   [runtime.MaxRank]int64
	stride [runtime.MaxRank]int64
}

// step is between neighbours along the innermost dim.
func (w *walk) step() int64 { return w.stride[w.rank-1] }

// walker is a position of a walk: left positions of the innermost dim are before it moves
// along another one.
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

// on goes n positions on, at most those that are left.
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

// walkPieces bounds how many positions of the inner group are walked over at once, and how
// many of the outer one.
const walkPieces = 256

// pieces takes positions [i, i+n) apart, n being walkPieces at most, also where rows of
// panels end, which are so wide and so far apart. Of elements of so many bytes.
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

// walkedOf is an operand as it lies along the dims of a view.
func (d *dotRun) walkedOf(i int, r *ready, v *dotView, slot int) walked {
	a := &r.l.Args[slot]
	size := int64(r.p.kernel.Operands[slot].DT.Size())
	w := walked{base: elementOf(a, size), size: size, batch: d.strides(i, r, a), operand: slot}
	w.outer.along(v, a, v.lead, v.innerAt)
	w.inner.along(v, a, v.innerAt, v.rank)
	return w
}

// along is a walk along dims [from, end) of a view.
func (w *walk) along(v *dotView, a *runtime.Access, from, end int) {
	w.rank = end - from
	for d := range w.rank {
		w.dims[d], w.stride[d] = v.size[from+d], v.stride(a, from+d)
	}
}

// walkOver is one pass over points [o0, o1) by [i0, i1) of a batch, to or from a block
// whose rows are ld elements apart, or are those of panels.
type walkOver struct {
	batch, o0, o1, i0, i1 int64
	block                 unsafe.Pointer
	ld, width, panel      int64
}

// load copies memory into a block.
func (w *walked) load(c *contraction, f *dotCode, o *walkOver) { w.pass(c, f, o, true) }

// store copies a block into memory.
func (w *walked) store(c *contraction, f *dotCode, o *walkOver) { w.pass(c, f, o, false) }

// panelsLoaded is how often panels did.
var panelsLoaded atomic.Int64

// panels is load of panels, the last of which is filled up with zeros.
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

// copyPieces is what machine code does, in Go, and of elements that lie a step apart. A
// table of functions would have frames allocated.
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
