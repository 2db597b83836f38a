package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Consider an operand whose elements are far apart along the innermost dim and adjacent along
// another dim, like a transposed matrix. Each element costs a cache line, and the same line again
// for the next element in it, because the line has been evicted meanwhile. Therefore each tile of
// both dims is transposed into the thread's memory, a line at a time, and the kernel reads it
// there as a dense operand. Elementwise launches walk tiles for that. Launches with rows already
// have tiles; they get as many rows as share a line.

const (
	// transposedFrom is the number of points from which walking tiles pays.
	transposedFrom = 2048
	// transposedSide is the size of a tile along both dims, if the dims are that long.
	// transposedLong is the same for data larger than a cache, where contiguous runs of memory
	// should be long.
	transposedSide, transposedLong = 64, 128
	// transposedLeast is the least number of rows of a tile of rows: those that share a line and
	// are transposed together.
	transposedLeast = 16
	// transposedMost is the largest size of a tile along one dim if the other dim is short.
	transposedMost = 1024
	// transposedBytes bounds the bytes that are transposed at a time, to keep them in a near
	// cache.
	transposedBytes = 256 << 10
	// apart is the distance, in bytes, from which on a vector of loads does not find its elements
	// in one line.
	apart = 16
	line  = 64
)

// Short rows are another case. With an innermost dim of three points, such as an image's colours,
// each row is only a remainder, which takes 40 ns. If all operands continue from row to row,
// Collapse has merged that dim. An operand that repeats for each row, or for each point of a row,
// prevents the merge. Such an operand is copied into tiles of whole rows, in which all operands
// continue.

const (
	// shortRow is the most points of a row for which this pays.
	shortRow = 48
	// shortRows is the least number of rows, and shortPoints the number of points of a tile.
	shortRows, shortPoints = 4, 2048
	// swappedRow is the length up to which walking along the innermost dim is avoided.
	swappedRow = 8
)

// transposed describes which operands of a launch are transposed, and by which tiles.
type transposed struct {
	dim        int    // the dim of the launch along which elements are neighbours
	ops        uint64 // a bit for each operand; 0: none
	rows, cols int64  // size of an elementwise launch's tile: points along dim and along the innermost one
}

func (t *transposed) has(i int) bool { return t.ops>>i&1 != 0 }

// transposable returns the inputs that a kernel reads only at the points themselves: an address
// behind a guard may be outside memory. In a contraction it includes row operands, because a row
// is a point of the results there.
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

// neighbours returns the dim in [first, last] along which operand i has the smallest stride. It
// returns -1 if the innermost dim has a smaller one, or if a tile does not pay.
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

// orderTransposed chooses the operands to transpose. With rows it uses the last kept dim, because
// a tile consists of successive rows.
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
			return // a guard needs positions in the launch, not in a tile
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

// shortRows returns tiles of whole rows if rows are short.
func (r *ready) shortRows() (t transposed, ok bool) {
	l := r.l
	inner, last := l.Rank-1, l.Rank-2
	m, n := l.Dims[last], l.Dims[inner]
	if r.p.hasRows || n < 2 || n > shortRow || m < shortRows { // with one point per row every operand is contiguous
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
				return t, false // transposing it along d is better
			}
			t.ops |= 1 << i
		}
	}
	t.dim, t.rows, t.cols = last, min(m, shortPoints/n), n
	return t, t.ops != 0
}

// size chooses the size of tiles in m by n points, each of the given bytes.
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

// transposedRows sets the tile's rows to those that share a line, or more if rows are small. It
// returns false if they do not fit in a cache. m rows are adjacent.
func (r *ready) transposedRows(rowBytes, m int64) bool {
	if transposedLeast*rowBytes > 2*tileBytes {
		return false
	}
	rows := max(transposedLeast, min(transposedBytes/rowBytes, transposedLong, r.outputs/(4*r.threads)))
	r.tile = max(r.tile, min(rows, m, r.outputs))
	return true
}

func abs(n int64) int64 { return max(n, -n) }

// orderSwapped swaps the last two dims of an elementwise launch if the innermost dim is short and
// the inputs are dense along the other one but cannot be transposed. That happens if elements are
// combined from several operands, with a guard for each.
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
