package contract

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// Facts about a panel of y. Two threads that check a panel at the same time find the same facts.
const (
	panelFinite = 1 << iota
	panelNotFinite
	panelSmall
	panelNotSmall
)

// smallLimit is the limit up to which numbers are small: a chain of blockK products of small
// numbers, rounding included, stays below 2^89.
const smallLimit = 0x1p40

// floatBits holds constants for comparing floats of a dtype as integers.
type floatBits struct{ number, largest, small, minusInf uint64 }

var floatBitsOf = map[ir.DType]*floatBits{
	ir.Float32: {1<<31 - 1, uint64(math.Float32bits(math.MaxFloat32)), uint64(math.Float32bits(smallLimit)), 0xff800000_ff800000},
	ir.Float64: {1<<63 - 1, math.Float64bits(math.MaxFloat64), math.Float64bits(smallLimit), math.Float64bits(math.Inf(-1))},
}

// extent returns the range of k steps in which rows of x have nonzero elements, in whole vectors.
func (j *job) extent(x unsafe.Pointer, ldx, rows, k int64) (from, to int64) {
	bits := uint64(math.MaxUint64)
	switch j.c.DT { // the sign of a zero does not count
	case ir.Float32:
		bits = 0x7fffffff_7fffffff
	case ir.Float64:
		bits = 1<<63 - 1
	}
	if j.element64(x)&bits != 0 && j.element64(unsafe.Add(x, (k-1)*j.size))&bits != 0 {
		return 0, k // the usual case
	}
	return j.differing(x, ldx, rows, k, j.size, 0, bits)
}

// element64 reads an element's bits from memory.
func (j *job) element64(p unsafe.Pointer) uint64 {
	if j.size == 4 {
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

// differing returns the range in which rows of n elements, each of size bytes, ld bytes apart,
// differ from the value than in some of bits. The range is in whole vectors and contains all
// differing elements.
func (j *job) differing(p unsafe.Pointer, ld, rows, n, size int64, than, bits uint64) (from, to int64) {
	lanes := j.lanes * j.size / size
	whole := n / lanes * lanes
	f := native.DiffersFrame{X: p, Ld: ld, Rows: rows, Vectors: n / lanes, Than: than, Bits: bits}
	j.f.call(j.f.Differs, unsafe.Pointer(&f), j.mxcsr)
	from, to = f.From*lanes, f.To*lanes
	for r := int64(0); whole < n && r < rows; r++ { // the elements that fill no vector
		for i := whole * size; i < n*size; i++ {
			shift := i % 8 * 8
			if (uint64(*(*uint8)(unsafe.Add(p, r*ld+i)))<<shift^than&(0xff<<shift))&bits != 0 {
				return min(from, whole), n
			}
		}
	}
	return from, to
}

// beyond reports that rows of n elements contain one whose absolute value is above a limit.
func (j *job) beyond(p unsafe.Pointer, ld, rows, n int64, b *floatBits, limit uint64) bool {
	f := native.BeyondFrame{X: p, Ld: ld, Rows: rows, Vectors: n / j.lanes, Bits: b.number, Limit: limit}
	if f.Vectors > 0 {
		if j.f.call(j.f.Beyond, unsafe.Pointer(&f), j.mxcsr); f.Beyond != 0 {
			return true
		}
	}
	for r := range rows {
		for i := n / j.lanes * j.lanes; i < n; i++ {
			at := unsafe.Add(p, r*ld+i*j.size)
			if j.size == 4 && uint64(*(*uint32)(at))&b.number > limit || j.size == 8 && *(*uint64)(at)&b.number > limit {
				return true
			}
		}
	}
	return false
}

// is returns a fact about panel q, computing it if it is unknown.
func (j *job) is(y *stripBlock, q, k int64, yes, no uint32) bool {
	known := atomic.LoadUint32(&y.known[q])
	if known&(yes|no) == 0 {
		b := floatBitsOf[j.c.DT]
		limit := b.largest
		if yes == panelSmall {
			limit = b.small
		}
		if known |= yes; j.beyond(unsafe.Add(y.p, q*y.step), 0, 1, k*j.nr, b, limit) {
			known ^= yes | no
		}
		atomic.StoreUint32(&y.known[q], known)
	}
	return known&yes != 0
}

// Spans caches which columns of a mask are visible: the rows of an attention head use the same
// mask as those of the head before.
type Spans map[maskPart][2]int64

// maskPart identifies some rows and columns of a mask in memory.
type maskPart struct {
	at         unsafe.Pointer
	rows, cols int64
}

// mostSpans bounds the memory used for masks that never repeat.
const mostSpans = 1 << 12

// seen returns the range of columns of a tile that are not hidden.
func (j *job) seen(i, rows, at, cols int64, x unsafe.Pointer, ldx, k int64) (from, to int64) {
	c := j.c
	if !j.masked {
		return 0, cols
	}
	size := int64(1)
	if c.Mask.Kind == ByInf {
		size = j.size
	}
	part := maskPart{unsafe.Add(c.Mask.At, (i*c.Mask.Row+at)*size), rows, cols}
	if span, ok := c.Mask.Spans[part]; ok {
		from, to = span[0], span[1]
	} else {
		from, to = j.unmasked(part, size)
		if c.Mask.Spans != nil {
			if len(c.Mask.Spans) == mostSpans {
				clear(c.Mask.Spans)
			}
			c.Mask.Spans[part] = [2]int64{from, to}
		}
	}
	if c.Mask.Small && (from > 0 || to < cols) {
		if b := floatBitsOf[c.DT]; j.beyond(x, ldx, rows, k, b, b.small) {
			return 0, cols
		}
	}
	return from, to
}

// unmasked returns the range of columns in which a part of the mask does not hide everything.
// Elements of the mask have size bytes.
func (j *job) unmasked(m maskPart, size int64) (from, to int64) {
	ld, than := j.c.Mask.Row*size, uint64(0)
	switch j.c.Mask.Kind {
	case ByInf:
		than = floatBitsOf[j.c.DT].minusInf
	case ByTrue:
		than = 0x0101010101010101
	}
	from, to = j.differing(m.at, ld, m.rows, m.cols, size, than, math.MaxUint64)
	for size == 1 && from+8 <= to && !otherBytes(unsafe.Add(m.at, from), ld, m.rows, than) { // a vector of bytes covers two panels
		from += 8
	}
	for size == 1 && from+8 <= to && !otherBytes(unsafe.Add(m.at, to-8), ld, m.rows, than) {
		to -= 8
	}
	if from >= to { // everything is hidden
		return 0, 0
	}
	return from, to
}

// otherBytes reports that eight bytes of any row differ from than.
func otherBytes(p unsafe.Pointer, ld, rows int64, than uint64) bool {
	for r := range rows {
		if *(*uint64)(unsafe.Add(p, r*ld)) != than {
			return true
		}
	}
	return false
}

// lookedAt computes one block of k of a tile, using facts about panels to skip work. If all its
// rows of x begin or end with zeros, as attention weights with masked scores do, the chains use
// only the steps between. That is exact: 0 times a finite number is +0 or -0, which added to a
// chain can only change the sign of a zero. A zero of either sign does not change the total, which
// is never -0. A panel of hidden results is filled with +0.
func (j *job) lookedAt(f *native.TileFrame, i, rows, at, cols, k int64, y *stripBlock) {
	from, to := j.extent(f.X, f.LdX, rows, k)
	left, right := j.seen(i, rows, at, cols, f.X, f.LdX, k)
	if from == 0 && to == k && left == 0 && right == cols {
		j.strip(rows, f, cols)
		j.tell(i, rows, at+cols)
		return
	}
	const clears, skips, all = 0, 1, 2
	does := func(q int64) int {
		switch {
		case ((q+1)*j.nr <= left || q*j.nr >= right) && (!j.c.Mask.Small || j.is(y, q, k, panelSmall, panelNotSmall)):
			return clears
		case to-from < k && (floatBitsOf[j.c.DT] == nil || j.is(y, q, k, panelFinite, panelNotFinite)):
			return skips
		}
		return all
	}
	count, end := ceilDiv(cols, j.nr), int64(0) // end of the computed panels
	for q := int64(0); q < count; {             // runs of panels with the same treatment
		first, what := q, does(q)
		for q++; q < count && does(q) == what; q++ {
		}
		if what != clears {
			end = q
		}
		g, wide := *f, min(q*j.nr, cols)-first*j.nr
		g.Y, g.C = unsafe.Add(f.Y, first*f.StepY), unsafe.Add(f.C, first*f.StepC)
		switch what {
		case clears:
			zero(g.C, g.LdC, rows, wide*j.size)
			if j.tells {
				*(*int64)(j.c.Mask.Hidden) += rows * wide
			}
			continue
		case skips:
			g.X, g.Y, g.K = unsafe.Add(g.X, from*j.size), unsafe.Add(g.Y, from*g.LdY), max(to-from, 0)
			if g.K == 0 && g.Flags&native.TileFirst == 0 {
				continue
			}
		}
		j.strip(rows, &g, wide)
	}
	if end > 0 || at == 0 {
		j.tell(i, rows, at+min(end*j.nr, cols))
	}
}

// tell records the column from which on all results of some rows are hidden zeros. Strips come one
// after another, on one thread.
func (j *job) tell(i, rows, end int64) {
	if !j.tells {
		return
	}
	tails := unsafe.Slice((*int64)(j.c.Mask.Tails), j.m)[i : i+rows]
	for t := range tails {
		tails[t] = end
	}
}
