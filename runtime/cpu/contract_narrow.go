package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// narrowDot computes a contraction of 8- or 16-bit integers by tiles of 32-bit integers. Sums and
// products wrap, so the lower bits of a result depend only on the lower bits of the operands.
// Operands are widened as they are packed; results are narrowed as they are passed on.
type narrowDot struct {
	c    *contraction
	wide contraction
	size int64
}

// narrowDots lists the dtypes that narrowDot handles, with their conversion.
var narrowDots = [ir.NumDTypes]func(to, from unsafe.Pointer, n int64, widen bool){
	ir.Int8: convertRow[uint8], ir.Uint8: convertRow[uint8], ir.Int16: convertRow[uint16], ir.Uint16: convertRow[uint16],
}

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
func widened(c *contraction) *contraction {
	n := &narrowDot{c: c, wide: *c, size: int64(c.dt.Size())}
	n.wide.dt = ir.Int32
	n.wide.x, n.wide.y = n.side(&c.x), n.side(&c.y)
	n.wide.drain = n.drain
	n.wide.stays, n.wide.mask = nil, nil
	return &n.wide
}

func (n *narrowDot) side(s *side) side {
	convert := narrowDots[n.c.dt]
	if s.kind == sideMem {
		// Read along the dim in which elements are neighbours.
		kind, own, other := sideFillI, s.stride, s.kstride
		if s.kstride == 1 {
			kind, own, other = sideFillK, s.kstride, s.stride
		}
		return side{kind: kind, fill: func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
			src := unsafe.Add(s.base, (n.c.offset(s.batch, batch)+i0*s.stride+p0*s.kstride)*n.size)
			rows, run := i1-i0, p1-p0
			if kind == sideFillI {
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
	return side{kind: s.kind, fill: func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
		rows, run := i1-i0, p1-p0
		if s.kind == sideFillI {
			rows, run = run, rows
		}
		var room [maxFill]uint16
		stage := unsafe.Pointer(&room)
		s.fill(batch, i0, i1, p0, p1, stage, run)
		for r := range rows {
			convert(unsafe.Add(dst, r*ld*4), unsafe.Add(stage, r*run*n.size), run, true)
		}
	}}
}

// drain narrows a tile in place, row by row.
func (n *narrowDot) drain(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
	convert := narrowDots[n.c.dt]
	for i := range rows {
		convert(unsafe.Add(tile, i*ld*n.size), unsafe.Add(tile, i*ld*4), cols, false)
	}
	if n.c.drain != nil {
		n.c.drain(batch, row0, rows, col0, cols, tile, ld)
		return
	}
	out := unsafe.Add(n.c.out, (n.c.offset(n.c.outBatch, batch)+row0*n.c.outRow+col0)*n.size)
	for i := range rows {
		copy(unsafe.Slice((*byte)(unsafe.Add(out, i*n.c.outRow*n.size)), cols*n.size), unsafe.Slice((*byte)(unsafe.Add(tile, i*ld*n.size)), cols*n.size))
	}
}
