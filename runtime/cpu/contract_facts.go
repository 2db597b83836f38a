package cpu

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// What is known of a panel of y. Another thread that looks at the same time finds the
// same.
const (
	panelFinite = 1 << iota
	panelNotFinite
	panelSmall
	panelNotSmall
)

// contractSmall is the size up to which numbers are small, see MR_C_SMALL.
const contractSmall = 0x1p40

// floatBits are how the floats of a dtype are looked at as integers.
type floatBits struct{ number, largest, small, minusInf uint64 }

var floatBitsOf = map[ir.DType]*floatBits{
	ir.Float32: {1<<31 - 1, uint64(math.Float32bits(math.MaxFloat32)), uint64(math.Float32bits(contractSmall)), 0xff800000_ff800000},
	ir.Float64: {1<<63 - 1, math.Float64bits(math.MaxFloat64), math.Float64bits(contractSmall), math.Float64bits(math.Inf(-1))},
}

// extent is the range of k steps in which rows of x have anything but zeros, in whole
// vectors.
func (j *dotJob) extent(x unsafe.Pointer, ldx, rows, k int64) (from, to int64) {
	bits := uint64(math.MaxUint64)
	switch j.c.dt { // of zeros the sign does not count
	case ir.Float32:
		bits = 0x7fffffff_7fffffff
	case ir.Float64:
		bits = 1<<63 - 1
	}
	return j.differing(x, ldx, rows, k, j.size, 0, bits)
}

// differing is where rows of n elements of so many bytes, ld bytes apart, differ from a
// value in some bits: in whole vectors, which hold all elements that do.
func (j *dotJob) differing(p unsafe.Pointer, ld, rows, n, size int64, than, bits uint64) (from, to int64) {
	lanes := j.lanes * j.size / size
	whole := n / lanes * lanes
	f := native.DiffersFrame{X: p, Ld: ld, Rows: rows, Vectors: n / lanes, Than: than, Bits: bits}
	j.f.call(j.f.Differs, unsafe.Pointer(&f), j.mxcsr)
	from, to = f.From*lanes, f.To*lanes
	for r := int64(0); whole < n && r < rows; r++ { // what fills no vector
		for i := whole * size; i < n*size; i++ {
			shift := i % 8 * 8
			if (uint64(*(*uint8)(unsafe.Add(p, r*ld+i)))<<shift^than&(0xff<<shift))&bits != 0 {
				return min(from, whole), n
			}
		}
	}
	return from, to
}

// beyond reports an element, of rows of n, that is larger than a limit; the sign does
// not count.
func (j *dotJob) beyond(p unsafe.Pointer, ld, rows, n int64, b *floatBits, limit uint64) bool {
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

// is looks a fact about panel q up, or finds it out.
func (j *dotJob) is(y *dotPanels, q, k int64, yes, no uint32) bool {
	known := atomic.LoadUint32(&y.known[q])
	if known&(yes|no) == 0 {
		b := floatBitsOf[j.c.dt]
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

// seen is the range of columns of a tile that somebody will see.
func (j *dotJob) seen(i, rows, at, cols int64, x unsafe.Pointer, ldx, k int64) (from, to int64) {
	c := j.c
	if !j.masked {
		return 0, cols
	}
	if c.maskKind == maskInf {
		b := floatBitsOf[c.dt]
		from, to = j.differing(unsafe.Add(c.mask, (i*c.maskRow+at)*j.size), c.maskRow*j.size, rows, cols, j.size, b.minusInf, math.MaxUint64)
	} else {
		than := uint64(0)
		if c.maskKind == maskTrue {
			than = 0x0101010101010101
		}
		from, to = j.differing(unsafe.Add(c.mask, i*c.maskRow+at), c.maskRow, rows, cols, 1, than, math.MaxUint64)
	}
	if from >= to { // none
		from, to = 0, 0
	}
	if c.maskSmall && (from > 0 || to < cols) {
		if b := floatBitsOf[c.dt]; j.beyond(x, ldx, rows, k, b, b.small) {
			return 0, cols
		}
	}
	return from, to
}

// lookedAt is one block of k of a tile, in panels whose facts count. Where all its rows
// of x begin or end with zeros, as weights do whose scores were masked, the chains take
// only what is between: 0 times a finite number is +0 or -0, which added to a chain can
// change the sign of a zero and nothing else, and a zero of either sign that is added to
// the total, which is never -0, leaves it as it is. Where nobody sees a panel of results,
// they are +0.
func (j *dotJob) lookedAt(f *native.TileFrame, i, rows, at, cols, k int64, y *dotPanels) {
	from, to := j.extent(f.X, f.LdX, rows, k)
	left, right := j.seen(i, rows, at, cols, f.X, f.LdX, k)
	if from == 0 && to == k && left == 0 && right == cols {
		j.strip(rows, f, cols)
		return
	}
	const clears, skips, all = 0, 1, 2
	does := func(q int64) int {
		switch {
		case ((q+1)*j.nr <= left || q*j.nr >= right) && (!j.c.maskSmall || j.is(y, q, k, panelSmall, panelNotSmall)):
			return clears
		case to-from < k && (floatBitsOf[j.c.dt] == nil || j.is(y, q, k, panelFinite, panelNotFinite)):
			return skips
		}
		return all
	}
	count := ceilDiv(cols, j.nr)
	for q := int64(0); q < count; { // runs of panels that are treated alike
		first, what := q, does(q)
		for q++; q < count && does(q) == what; q++ {
		}
		g, wide := *f, min(q*j.nr, cols)-first*j.nr
		g.Y, g.C = unsafe.Add(f.Y, first*f.StepY), unsafe.Add(f.C, first*f.StepC)
		switch what {
		case clears:
			zero(g.C, g.LdC, rows, wide*j.size)
			if j.c.hidden != nil {
				atomic.AddInt64((*int64)(j.c.hidden), rows*wide)
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
}
