package fold

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// scans are the loops by which a scan joins the elements of a row.
type scans[T computing] struct {
	one func(a, b T) T
	// run continues a scan from x, and returns the last value.
	run func(to, v []T, x T) T
	// four scans four blocks, each from its own beginning, in an interleaved loop: an operation
	// then depends only on the one before in its block. If it is nil, blocks are scanned one after
	// another.
	four func(to, v []T)
	// offset joins off in front of all elements. off is in memory that does not move.
	offset func(to []T, off *T)
}

// plainScans returns the scans with Go's arithmetic, by the op that joins.
func plainScans[T computing](op ir.Op) scans[T] {
	switch op {
	case ir.Add:
		return scans[T]{plus[T], plusRun[T], plusFour[T], plusOffset[T]}
	case ir.Mul:
		return scans[T]{times[T], timesRun[T], timesFour[T], timesOffset[T]}
	case ir.Maximum, ir.Or:
		return scans[T]{larger[T], largerRun[T], largerFour[T], largerOffset[T]}
	}
	return scans[T]{smaller[T], smallerRun[T], smallerFour[T], smallerOffset[T]}
}

// scansBy returns the scans of any op.
func scansBy[T computing](one func(a, b T) T) scans[T] {
	return scans[T]{
		one: one,
		run: func(to, v []T, x T) T {
			for i, y := range v {
				x = one(x, y)
				to[i] = x
			}
			return x
		},
		offset: func(to []T, off *T) {
			for i, x := range to {
				to[i] = one(*off, x)
			}
		},
	}
}

// row scans elements from number r on of a row. Between calls run holds the result of the current
// block, and offset that of the blocks before it.
func (s *scans[T]) row(to, v []T, run, offset *T, r int64) {
	const four = 4 * ir.ScanBlock
	x := *run
	for len(v) > 0 {
		in := int(r % ir.ScanBlock)
		if in == 0 {
			*offset = s.before(*offset, x, r)
		}
		if in == 0 && s.four != nil && len(v) >= four {
			s.four(to, v)
			for b := 0; b < four; b += ir.ScanBlock {
				if b > 0 {
					*offset = s.before(*offset, x, r)
				}
				block := to[b : b+ir.ScanBlock]
				x = block[ir.ScanBlock-1]
				if r >= ir.ScanBlock {
					s.offset(block, offset)
				}
				r += ir.ScanBlock
			}
			to, v = to[four:], v[four:]
			continue
		}
		some := min(ir.ScanBlock-in, len(v))
		if in == 0 {
			x = v[0]
			to[0] = x
			x = s.run(to[1:some], v[1:some], x)
		} else {
			x = s.run(to[:some], v[:some], x)
		}
		if r >= ir.ScanBlock {
			s.offset(to[:some], offset)
		}
		to, v, r = to[some:], v[some:], r+int64(some)
	}
	*run = x
}

// before returns the result of all blocks before the one that begins at element r. x is the result
// of the last of them.
func (s *scans[T]) before(off, x T, r int64) T {
	switch {
	case r == ir.ScanBlock:
		return x
	case r > ir.ScanBlock:
		return s.one(off, x)
	}
	return off
}

// columns scans rows from number r on of n dense columns.
func (s *scans[T]) columns(out, values unsafe.Pointer, x, off []T, into func(to, from []T), r, m int64) {
	n := int64(len(x))
	size := int64(unsafe.Sizeof(x[0]))
	for i := r; i < r+m; i++ {
		to, v := memory.Elements[T](unsafe.Add(out, (i-r)*n*size), n), memory.Elements[T](unsafe.Add(values, (i-r)*n*size), n)
		switch {
		case i%ir.ScanBlock > 0:
		case i == ir.ScanBlock:
			copy(off, x)
		case i > 0:
			into(off, x)
		}
		if i%ir.ScanBlock == 0 {
			copy(x, v)
		} else {
			into(x, v)
		}
		if i < ir.ScanBlock {
			copy(to, x)
		} else {
			copy(to, off)
			into(to, x)
		}
	}
}

// scanOf returns the scan function of a folder.
func scanOf[T computing](s scans[T], into func(to, from []T)) func(out, values, run, offset unsafe.Pointer, r, m, n int64) {
	return func(out, values, run, offset unsafe.Pointer, r, m, n int64) {
		if n == 1 {
			s.row(memory.Elements[T](out, m), memory.Elements[T](values, m), (*T)(run), (*T)(offset), r)
			return
		}
		s.columns(out, values, memory.Elements[T](run, n), memory.Elements[T](offset, n), into, r, m)
	}
}

// fourBlocks returns the first four blocks of a row.
func fourBlocks[T computing](v []T) (a, b, c, d *[ir.ScanBlock]T) {
	const n = ir.ScanBlock
	return (*[n]T)(v), (*[n]T)(v[n:]), (*[n]T)(v[2*n:]), (*[n]T)(v[3*n:])
}

func plusRun[T computing](to, v []T, x T) T {
	to = to[:len(v)]
	for i, y := range v {
		x = x + y
		to[i] = x
	}
	return x
}

func plusOffset[T computing](to []T, before *T) {
	off := *before
	for i, x := range to {
		to[i] = off + x
	}
}

func plusFour[T computing](to, v []T) {
	a, b, c, d := fourBlocks(v)
	p, q, r, s := fourBlocks(to)
	w, x, y, z := a[0], b[0], c[0], d[0]
	p[0], q[0], r[0], s[0] = w, x, y, z
	for i := 1; i < ir.ScanBlock; i++ {
		w, x, y, z = w+a[i], x+b[i], y+c[i], z+d[i]
		p[i], q[i], r[i], s[i] = w, x, y, z
	}
}

func timesRun[T computing](to, v []T, x T) T {
	to = to[:len(v)]
	for i, y := range v {
		x = T(x * y)
		to[i] = x
	}
	return x
}

func timesOffset[T computing](to []T, before *T) {
	off := *before
	for i, x := range to {
		to[i] = T(off * x)
	}
}

func timesFour[T computing](to, v []T) {
	a, b, c, d := fourBlocks(v)
	p, q, r, s := fourBlocks(to)
	w, x, y, z := a[0], b[0], c[0], d[0]
	p[0], q[0], r[0], s[0] = w, x, y, z
	for i := 1; i < ir.ScanBlock; i++ {
		w, x, y, z = T(w*a[i]), T(x*b[i]), T(y*c[i]), T(z*d[i])
		p[i], q[i], r[i], s[i] = w, x, y, z
	}
}

func largerRun[T computing](to, v []T, x T) T {
	to = to[:len(v)]
	for i, y := range v {
		x = max(x, y)
		to[i] = x
	}
	return x
}

func largerOffset[T computing](to []T, before *T) {
	off := *before
	for i, x := range to {
		to[i] = max(off, x)
	}
}

func largerFour[T computing](to, v []T) {
	a, b, c, d := fourBlocks(v)
	p, q, r, s := fourBlocks(to)
	w, x, y, z := a[0], b[0], c[0], d[0]
	p[0], q[0], r[0], s[0] = w, x, y, z
	for i := 1; i < ir.ScanBlock; i++ {
		w, x, y, z = max(w, a[i]), max(x, b[i]), max(y, c[i]), max(z, d[i])
		p[i], q[i], r[i], s[i] = w, x, y, z
	}
}

func smallerRun[T computing](to, v []T, x T) T {
	to = to[:len(v)]
	for i, y := range v {
		x = min(x, y)
		to[i] = x
	}
	return x
}

func smallerOffset[T computing](to []T, before *T) {
	off := *before
	for i, x := range to {
		to[i] = min(off, x)
	}
}

func smallerFour[T computing](to, v []T) {
	a, b, c, d := fourBlocks(v)
	p, q, r, s := fourBlocks(to)
	w, x, y, z := a[0], b[0], c[0], d[0]
	p[0], q[0], r[0], s[0] = w, x, y, z
	for i := 1; i < ir.ScanBlock; i++ {
		w, x, y, z = min(w, a[i]), min(x, b[i]), min(y, c[i]), min(z, d[i])
		p[i], q[i], r[i], s[i] = w, x, y, z
	}
}
