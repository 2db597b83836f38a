package cpu

import (
	"slices"
	"unsafe"
)

// transposed walks over tiles, as transpose.c does.
func (e *goExecutor) transposed(r *ready) {
	t, whole := &r.transposed, argsOf(r)
	inner := whole.rank - 1
	m, n := whole.dims[t.dim], whole.dims[inner]
	down, across := (m+t.rows-1)/t.rows, (n+t.cols-1)/t.cols
	tiles := r.total / (m * n) * down * across
	threads := min(int(r.threads), e.threads)
	e.split(threads, tiles, max(tiles/int64(threads*8), 1), func(begin, end int64) {
		a := whole
		a.ops = slices.Clone(whole.ops)
		local := make([][]uint64, len(a.ops))
		for i, o := range r.p.kernel.Operands {
			if t.has(i) {
				local[i] = make([]uint64, t.rows*t.cols*int64(o.DT.Size())/8+1)
			}
		}
		e.with(r, func(w *workspace) {
			for u := begin; u < end; u++ {
				top, left, rest := u%down*t.rows, u/down%across*t.cols, u/down/across
				a.dims[0], a.dims[1] = min(m-top, t.rows), min(n-left, t.cols)
				for i := range a.ops {
					from, o := &whole.ops[i], &a.ops[i]
					o.base, o.offset = from.base, from.offset+top*from.stride[t.dim]+left*from.stride[inner]
					o.stride[0], o.stride[1] = from.stride[t.dim], from.stride[inner]
				}
				for d := inner - 1; d >= 0; d-- {
					if d == t.dim {
						continue
					}
					for i := range a.ops {
						a.ops[i].offset += rest % whole.dims[d] * whole.ops[i].stride[d]
					}
					rest /= whole.dims[d]
				}
				for i := range a.ops {
					if t.has(i) {
						o := &a.ops[i]
						base := unsafe.Pointer(unsafe.SliceData(local[i]))
						gatherTile(r.p.kernel.Operands[i].DT.Size(), base, a.dims[1], o.base, o.offset, o.stride[0], o.stride[1], a.dims[0], a.dims[1])
						o.base, o.offset, o.stride[0], o.stride[1] = base, 0, a.dims[1], 1
					}
				}
				n, goesOn := a.dims[0]*a.dims[1], true
				for i := range a.ops {
					goesOn = goesOn && a.ops[i].stride[0] == a.dims[1]*a.ops[i].stride[1]
				}
				if a.rank = 2; goesOn {
					a.rank, a.dims[0] = 1, n
					for i := range a.ops {
						a.ops[i].stride[0] = a.ops[i].stride[1]
					}
				}
				w.eval(r.sched.tier0[0], &a, 0, n)
			}
		})
	})
}

// transpose makes the rows of a batch dense in memory of the batch.
func (w *rowWalk) transpose() {
	l, t := w.r.l, &w.r.transposed
	last, inner := l.Kept-1, l.Rank-1
	width, n := l.Dims[last], l.Dims[inner]
	if w.dense == nil {
		w.dense = make([][]uint64, len(l.Args))
	}
	for i, o := range w.r.p.kernel.Operands {
		if !t.has(i) {
			continue
		}
		size, a := o.DT.Size(), &l.Args[i]
		to := &w.points.ops[i]
		if w.dense[i] == nil {
			w.dense[i] = make([]uint64, w.n*w.reduced*int64(size)/8+1)
			to.base = unsafe.Pointer(unsafe.SliceData(w.dense[i]))
			step := int64(1)
			for d := inner; d >= 0; d-- {
				to.stride[d] = step
				step *= l.Dims[d]
			}
		}
		to.offset = -w.first * w.reduced
		base := a.Buf.(*buffer).p
		w.e.split(int(w.r.threads), w.n, max(w.n/(w.r.threads*2), transposedLeast), func(begin, end int64) {
			for r := w.first + begin; r < w.first+end; {
				m := min(width-r%width, w.first+end-r)
				for p := int64(0); p < w.reduced; p += n {
					q, rest := a.Offset+r%width*a.Stride[last], r/width
					for d := last - 1; d >= 0; d-- {
						q += rest % l.Dims[d] * a.Stride[d]
						rest /= l.Dims[d]
					}
					rest = p / n
					for d := inner - 1; d > last; d-- {
						q += rest % l.Dims[d] * a.Stride[d]
						rest /= l.Dims[d]
					}
					at := unsafe.Add(to.base, ((r-w.first)*w.reduced+p)*int64(size))
					gatherTile(size, at, w.reduced, base, q, a.Stride[last], a.Stride[inner], m, n)
				}
				r += m
			}
		})
	}
}

// gatherTile has element i*ld + j of dst, whose elements are of so many bytes, be element
// offset + i*rs + j*cs of src, for i < rows, j < cols.
func gatherTile(size int, dst unsafe.Pointer, ld int64, src unsafe.Pointer, offset, rs, cs, rows, cols int64) {
	switch size {
	case 1:
		gatherOf((*uint8)(dst), ld, (*uint8)(src), offset, rs, cs, rows, cols)
	case 2:
		gatherOf((*uint16)(dst), ld, (*uint16)(src), offset, rs, cs, rows, cols)
	case 4:
		gatherOf((*uint32)(dst), ld, (*uint32)(src), offset, rs, cs, rows, cols)
	default:
		gatherOf((*uint64)(dst), ld, (*uint64)(src), offset, rs, cs, rows, cols)
	}
}

// Squares of 16 by 16 keep both sides in cache.
func gatherOf[T any](dst *T, ld int64, src *T, offset, rs, cs, rows, cols int64) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	for i0 := int64(0); i0 < rows; i0 += 16 {
		for j0 := int64(0); j0 < cols; j0 += 16 {
			to := min(j0+16, cols)
			for i := i0; i < min(i0+16, rows); i++ {
				from := unsafe.Add(unsafe.Pointer(src), (offset+i*rs+j0*cs)*size)
				row := unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(dst), (i*ld+j0)*size)), to-j0)
				for j := range row {
					row[j] = *(*T)(unsafe.Add(from, int64(j)*cs*size))
				}
			}
		}
	}
}
