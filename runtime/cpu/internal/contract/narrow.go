package contract

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// narrow computes a contraction of 8- or 16-bit integers by tiles of 32-bit integers. Sums and
// products wrap, so the lower bits of a result depend only on the lower bits of the operands.
// Operands are widened as they are packed; results are narrowed as they are passed on.
type narrow struct {
	c    *Contraction
	wide Contraction
	size int64
}

// converters lists the dtypes that narrow handles, with their conversion.
var converters = func() (of [ir.NumDTypes]func(to, from unsafe.Pointer, n int64, widen bool)) {
	bySize := [...]func(to, from unsafe.Pointer, n int64, widen bool){1: convertRow[uint8], 2: convertRow[uint16]}
	for dt := range ir.NumDTypes {
		if dt.IsInt() && dt.Size() < len(bySize) {
			of[dt] = bySize[dt.Size()]
		}
	}
	return of
}()

// convertRow widens or narrows neighbouring elements. It goes forwards, so narrowing may be in
// place.
func convertRow[T uint8 | uint16](to, from unsafe.Pointer, n int64, widen bool) {
	if widen {
		x, y := unsafe.Slice((*uint32)(to), n), unsafe.Slice((*T)(from), n)
		for i := range x {
			x[i] = uint32(y[i])
		}
		return
	}
	x, y := unsafe.Slice((*T)(to), n), unsafe.Slice((*uint32)(from), n)
	for i := range x {
		x[i] = T(y[i])
	}
}

// widened returns the 32-bit contraction that computes a contraction of narrow integers.
func widened(c *Contraction) *Contraction {
	n := &narrow{c: c, wide: *c, size: int64(c.DT.Size())}
	n.wide.DT = ir.Int32
	n.wide.X, n.wide.Y = n.side(&c.X), n.side(&c.Y)
	n.wide.Out = Results{Drain: n.drain}
	n.wide.Keep, n.wide.Mask = nil, Mask{}
	return &n.wide
}

func (n *narrow) side(s *Side) Side {
	convert := converters[n.c.DT]
	if s.Kind == Memory {
		// Read along the dim in which elements are neighbours.
		kind, own, other := AlongI, s.Stride, s.KStride
		if s.KStride == 1 {
			kind, own, other = AlongK, s.KStride, s.Stride
		}
		return Side{Kind: kind, Fill: func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
			src := unsafe.Add(s.Base, (n.c.offset(s.Batch, batch)+i0*s.Stride+p0*s.KStride)*n.size)
			rows, run := i1-i0, p1-p0
			if kind == AlongI {
				rows, run = run, rows
			}
			for r := range rows {
				to, from := unsafe.Add(dst, r*ld*4), unsafe.Add(src, r*other*n.size)
				if own == 1 {
					convert(to, from, run, true)
					continue
				}
				for q := range run {
					convert(unsafe.Add(to, q*4), unsafe.Add(from, q*own*n.size), 1, true)
				}
			}
		}}
	}
	return Side{Kind: s.Kind, Fill: func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
		rows, run := i1-i0, p1-p0
		if s.Kind == AlongI {
			rows, run = run, rows
		}
		var room [maxFill]uint16
		stage := unsafe.Pointer(&room)
		n.c.fill(s, batch, i0, i1, p0, p1, stage, run)
		for r := range rows {
			convert(unsafe.Add(dst, r*ld*4), unsafe.Add(stage, r*run*n.size), run, true)
		}
	}}
}

// drain narrows a tile in place, row by row.
func (n *narrow) drain(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
	convert := converters[n.c.DT]
	for i := range rows {
		convert(unsafe.Add(tile, i*ld*n.size), unsafe.Add(tile, i*ld*4), cols, false)
	}
	if n.c.drains() {
		n.c.drain(batch, row0, rows, col0, cols, tile, ld)
		return
	}
	out := unsafe.Add(n.c.Out.Base, (n.c.offset(n.c.Out.Batch, batch)+row0*n.c.Out.Row+col0)*n.size)
	for i := range rows {
		copy(unsafe.Slice((*byte)(unsafe.Add(out, i*n.c.Out.Row*n.size)), cols*n.size), unsafe.Slice((*byte)(unsafe.Add(tile, i*ld*n.size)), cols*n.size))
	}
}
