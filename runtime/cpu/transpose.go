package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// An operand whose elements lie far apart along the innermost dim, and side by
// side along another, as those of a transposed matrix, costs a line of memory for
// each of them, and the same line again for the next one in it, which by then has
// left the cache. So what a tile of both dims has of it is transposed into memory
// of the thread, a line at a time, and the kernel reads it there as if it had
// always been dense. Elementwise launches go over tiles for that; launches with
// rows have tiles, which get as many rows as share a line.

const (
	// transposedFrom is the number of points from which it is worth the walk over tiles.
	transposedFrom = 2048
	// transposedSide is how far a tile reaches along both dims where they are that
	// long, and transposedLong where all is more than a cache holds: stretches of
	// memory should be long then.
	transposedSide, transposedLong = 64, 128
	// transposedLeast is how many rows a tile of rows has at least: what a line holds
	// of them, and what is transposed together.
	transposedLeast = 16
	// transposedMost is how far it reaches along one where the other one is short.
	transposedMost = 1024
	// transposedBytes bounds what is transposed at a time, so that it stays in a near cache.
	transposedBytes = 256 << 10
	// apart is how many bytes lie between elements that no vector of loads finds in one line.
	apart = 16
	line  = 64
)

// Short rows are another case. Along an innermost dim of three points, as of an image's
// colours, nothing but a row's rest is done, forty nanoseconds each. Where operands go on
// from row to row there is no such dim, as launches are bound without it; what is repeated
// for each row, or for each point of a row, keeps it. That is spread over tiles of whole
// rows, in which all operands go on.

const (
	// shortRow is how many points a row has at most that is worth it.
	shortRow = 48
	// shortRows is how many rows there are at least, and shortPoints how many points a tile has.
	shortRows, shortPoints = 4, 2048
	// swappedRow is how short an innermost dim is that is better not walked along.
	swappedRow = 8
)

// transposed are the operands of a launch that are transposed, and by which tiles.
type transposed struct {
	dim        int    // of the launch, along which they are neighbours
	ops        uint64 // which, a bit each; 0: none
	rows, cols int64  // of an elementwise launch's tile: points along dim and along the innermost one
}

func (t *transposed) has(i int) bool { return t.ops>>i&1 != 0 }

// transposable marks the inputs that a kernel only reads at the points
// themselves: behind a guard there may be no memory. Those of rows are among them in a
// contraction, where a row is a point of the results.
func transposable(k *codegen.Kernel, contracts bool) (ops uint64) {
	for i, o := range k.Operands {
		if o.Kind == codegen.Input && (!o.Row || contracts) {
			ops |= 1 << i
		}
	}
	for _, in := range k.Body {
		if in.Op == ir.LoadAt || in.Op == ir.Load && in.Args[0] != ir.None {
			ops &^= 1 << uint32(in.Imm)
		}
	}
	return ops
}

// neighbours is the dim, of those from first to before the innermost, along which
// operand i moves by the least, -1 where that is the innermost one itself, or not
// worth a tile.
func (r *ready) neighbours(i, first, last int) int {
	a, dims, size := &r.l.Args[i], r.l.Dims[:r.l.Rank], int64(r.p.kernel.Operands[i].DT.Size())
	inner := len(dims) - 1
	far := abs(a.Stride[inner])
	if r.p.transposable>>i&1 == 0 || len(a.Stages) > 0 || dims[inner] < 2 || far*size < apart {
		return -1
	}
	best := -1
	for d := first; d <= last; d++ {
		s := abs(a.Stride[d])
		if s > 0 && s < far && s*size < line && dims[d] > 3 {
			best, far = d, s
		}
	}
	return best
}

// orderTransposed finds the operands that are to be transposed: for rows, along
// the last of the kept dims, as a tile is of successive rows.
func (r *ready) orderTransposed() {
	l, ops := r.l, r.p.kernel.Operands
	if l.Rank < 2 || r.p.transposable == 0 {
		return
	}
	if short, ok := r.shortRows(); ok {
		r.transposed = short
		return
	}
	if r.total < transposedFrom {
		return
	}
	first, last := 0, l.Rank-2
	if r.p.hasRows {
		if first, last = l.Kept-1, l.Kept-1; first < 0 || r.mode != modeRows || r.split || r.total == 0 {
			return
		}
	}
	var votes [runtime.MaxRank]int // bytes of a point
	for i := range ops {
		if r.guard(i) != 0 && !r.p.hasRows {
			return // positions in a tile are not those that a guard asks for
		}
		if d := r.neighbours(i, first, last); d >= 0 {
			votes[d] += ops[i].DT.Size()
		}
	}
	t := transposed{dim: first}
	for d := range votes {
		if votes[d] > votes[t.dim] {
			t.dim = d
		}
	}
	if votes[t.dim] == 0 {
		return
	}
	for i := range ops {
		if r.neighbours(i, first, last) == t.dim {
			t.ops |= 1 << i
		}
	}
	if !r.p.hasRows {
		t.size(l.Dims[t.dim], l.Dims[l.Rank-1], int64(votes[t.dim]), r.total)
	} else if !r.transposedRows(r.total/r.outputs*int64(votes[t.dim]), l.Dims[t.dim]) {
		return
	}
	r.transposed = t
}

// shortRows are tiles of whole rows, where those are short.
func (r *ready) shortRows() (t transposed, ok bool) {
	l := r.l
	inner, last := l.Rank-1, l.Rank-2
	m, n := l.Dims[last], l.Dims[inner]
	if r.p.hasRows || n < 2 || n > shortRow || m < shortRows { // of one point all are contiguous
		return t, false
	}
	for i := range l.Args {
		a := &l.Args[i]
		switch {
		case r.guard(i) != 0:
			return t, false
		case a.Stride[last] == n*a.Stride[inner]:
		case r.p.transposable>>i&1 == 0 || len(a.Stages) > 0:
			return t, false
		default:
			if d := r.neighbours(i, 0, last); d >= 0 && d < last {
				return t, false // it is better transposed along that
			}
			t.ops |= 1 << i
		}
	}
	t.dim, t.rows, t.cols = last, min(m, shortPoints/n), n
	return t, t.ops != 0
}

// size chooses the tiles of m by n points, each of so many bytes.
func (t *transposed) size(m, n, bytes, total int64) {
	side := int64(transposedSide)
	if total*bytes > lastCache()/4 {
		side = transposedLong
	}
	t.rows, t.cols = min(m, side), min(n, side)
	if t.rows < side {
		t.cols = min(n, side*side/t.rows, transposedMost)
	} else if t.cols < side {
		t.rows = min(m, side*side/t.cols, transposedMost)
	}
	for t.rows*t.cols*bytes > transposedBytes && t.rows > transposedLeast {
		t.rows /= 2
	}
}

// transposedRows makes a tile as high as lines are long, and higher where that
// takes little; false where a cache does not hold so much. m rows lie side by side.
func (r *ready) transposedRows(rowBytes, m int64) bool {
	if transposedLeast*rowBytes > 2*tileBytes {
		return false
	}
	rows := max(transposedLeast, min(transposedBytes/rowBytes, transposedLong, r.outputs/(4*r.threads)))
	r.tile = max(r.tile, min(rows, m, r.outputs))
	return true
}

func abs(n int64) int64 { return max(n, -n) }

// orderSwapped walks the last two dims of an elementwise launch the other way round
// where the innermost one is short and what is read lies along the one before it, but
// cannot be transposed: elements that are put together from several operands, a guard
// for each.
func (r *ready) orderSwapped() {
	l := r.l
	if l.Rank < 2 || r.transposed.ops != 0 {
		return
	}
	inner, last := l.Rank-1, l.Rank-2
	if n := l.Dims[inner]; n < 2 || n > swappedRow || l.Dims[last] <= n {
		return
	}
	gain := 0
	for i, o := range r.p.kernel.Operands {
		a := &l.Args[i]
		switch {
		case o.Kind == codegen.Index:
		case len(a.Stages) > 0:
			return
		case o.Kind == codegen.Input:
			gain += inOrder(a.Stride[last]) - inOrder(a.Stride[inner])
		}
	}
	r.swapped = gain > 0
}

func inOrder(stride int64) int {
	if stride == 0 || stride == 1 {
		return 1
	}
	return 0
}
