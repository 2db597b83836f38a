package rows

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// tile is a tile on which a thread works. Its pointers refer to the thread's memory, except the
// operands, which must be visible to the garbage collector.
type tile struct {
	x               *Job
	who             int                // the thread
	points, rows    *operands.Args     // arguments of the phases of each level
	pointPhases     operands.Evaluator // of points
	rowPhases       operands.Evaluator // of rows
	ops             []operands.Operand
	first, n        int64 // rows of the tile: the first one, and their number
	strips, columns int64
	own             bool // the temporaries belong to this tile alone
	bufs            [MaxOps]unsafe.Pointer
	sorting         [MaxOps]unsafe.Pointer // a row's values
	work            unsafe.Pointer         // memory of a sort
	wide            [MaxOps]unsafe.Pointer // values in their compute dtype
	acc             [MaxOps]unsafe.Pointer
	total           [MaxOps]unsafe.Pointer
	open            unsafe.Pointer // lanes of totals, for the current block
	from, to        int64          // points of the share
}

const (
	// chunk is the number of points evaluated at a time for a fold, so that their values stay
	// in the first-level cache. It is a multiple of the lanes and of a scan's blocks, and divides
	// a block.
	chunk = 2048
	// openBytes is the bytes of the lanes of a total.
	openBytes = 8 * ir.FoldLanes
	// partBytes is the most bytes that a block's fold result takes.
	partBytes = 16
)

// sizes is the most bytes that a row op of any phase needs, by purpose, and the most row ops of
// a phase.
type sizes struct{ count, chunk, acc, total, scratch, sort, work int64 }

// measure computes the size of a thread's memory.
func (x *Job) measure() {
	n := sizes{scratch: x.Scratch, chunk: memory.Aligned(8 * max(chunk, x.columns)), total: memory.Aligned(partBytes * x.columns)}
	lanes := int64(ir.FoldLanes)
	if x.columns > 1 {
		lanes = min(lanes, x.reduced) + fold.SpareLanes
	}
	for _, list := range x.Plan.Ops {
		n.count = max(n.count, int64(len(list)))
		for k := range list {
			switch o := &list[k]; o.Class {
			case ir.ClassSort:
				n.sort, n.work = memory.Aligned(x.reduced*8), memory.Aligned(fold.SortBytes(x.reduced))
			case ir.ClassScan:
				n.acc = max(n.acc, 2*memory.Aligned(x.columns*8))
			default:
				f, rows := x.Folds.Of(o.Fold, o.DT), lanes
				if f.Lanes == 1 {
					rows = 1
				}
				n.acc = max(n.acc, f.Size*max(ir.FoldLanes, rows*x.columns))
			}
		}
	}
	n.acc, n.scratch = memory.Aligned(n.acc), memory.Aligned(n.scratch)
	x.needs = n
	x.room = n.count*(2*n.chunk+n.acc+n.total+n.sort) + int64(x.Plan.totals)*openBytes + n.work + n.scratch + 64
	for k := range x.Plan.Temps {
		if !x.Split {
			x.room += x.tempBytes(x.Tile, k)
		}
	}
	for i, o := range x.Operands {
		if x.transposes(i) {
			x.room += x.transposedBytes(int64(o.DT.Size()))
		}
	}
}

// tempBytes returns the memory of temporary k with so many rows.
func (x *Job) tempBytes(rows int64, k int) int64 {
	t := &x.Plan.Temps[k]
	if !t.Row {
		rows *= x.reduced
	}
	return memory.Aligned(rows*int64(t.DT.Size()) + interp.Overrun)
}

// pitch returns the number of elements from one row of a transposed operand to the next. It avoids
// rows of whole pages, which would map to few lines of the first-level cache.
func (x *Job) pitch(size int64) int64 { return (x.reduced+63)/64*64 + 64/size }

func (x *Job) transposedBytes(size int64) int64 {
	return memory.Aligned(x.Tile*x.pitch(size)*size + interp.Overrun)
}

// makeTile divides a thread's memory into a tile's parts; it returns nil if memory is refused.
func (x *Job) makeTile(who int) *tile {
	s := x.host.Reserve(who, x.room)
	if s == nil {
		x.failed.Store(true)
		return nil
	}
	if x.Recorder != nil {
		x.Recorder.Region(s, x.room)
	}
	cut := func(n int64) unsafe.Pointer {
		p := s
		s = unsafe.Add(p, n)
		return p
	}
	t, n := &x.tiles[who], &x.needs
	ops := append(t.ops[:0], x.Args.Ops...)
	for range x.Plan.Temps {
		ops = append(ops, operands.Operand{})
	}
	*t = tile{x: x, who: who, ops: ops, own: !x.Split}
	for k := range n.count {
		t.bufs[k], t.wide[k] = cut(n.chunk), cut(n.chunk)
		t.acc[k], t.total[k], t.sorting[k] = cut(n.acc), cut(n.total), cut(n.sort)
	}
	t.open, t.work = cut(int64(x.Plan.totals)*openBytes), cut(n.work)
	t.pointPhases, t.rowPhases = x.host.Open(who)
	t.points, t.rows = t.pointPhases.Args(), t.rowPhases.Args()
	*t.points = x.Args
	t.points.Ops = ops
	t.points.Scratch = unsafe.Slice((*byte)(cut(n.scratch)), n.scratch)
	*t.rows = *t.points
	t.points.Bufs = t.bufs[:]
	if !x.Cols {
		if t.rows.Rank = max(x.Kept, 1); x.Kept == 0 {
			t.rows.Dims[0] = 1
		}
	} else {
		outer := x.Kept - 1
		rank := x.Args.Rank - outer
		t.points.Rank, t.rows.Rank = rank, rank
		for d := range rank {
			t.points.Dims[d], t.rows.Dims[d] = x.Args.Dims[d+outer], 1
		}
	}
	for i, o := range x.Operands {
		if x.transposes(i) {
			t.placeTransposed(i, int64(o.DT.Size()), cut(x.transposedBytes(int64(o.DT.Size()))))
		}
	}
	if x.Split {
		t.placeTemps(x.shared, x.Outputs)
	} else {
		t.placeTemps(s, x.Tile)
	}
	return t
}

// forget drops the pointers that would keep memory alive.
func (t *tile) forget() {
	clear(t.ops)
	t.x.host.Close(t.who)
	*t = tile{ops: t.ops[:0]}
}

// placeTemps sets the operands of the temporaries, whose memory begins at base and holds so many
// rows.
func (t *tile) placeTemps(base unsafe.Pointer, rows int64) {
	x := t.x
	for k := range x.Plan.Temps {
		o := &t.ops[x.nops+k]
		o.Base = base
		base = unsafe.Add(base, x.tempBytes(rows, k))
		dense := int64(1)
		for d := t.points.Rank - 1; d >= 0; d-- {
			kept := d < x.Kept
			if x.Cols {
				kept = d == t.points.Rank-1
			}
			if x.Plan.Temps[k].Row && !kept {
				continue
			}
			if o.Stride[d] = dense; !x.Cols || !kept {
				dense *= t.points.Dims[d]
			}
		}
	}
}

// placeTransposed makes an operand refer to the memory of its transposed rows.
func (t *tile) placeTransposed(i int, size int64, base unsafe.Pointer) {
	x, o := t.x, &t.ops[i]
	o.Base = base
	dense := int64(1)
	for d := x.Args.Rank - 1; d >= 0; d-- {
		if d == x.Kept-1 {
			dense = x.pitch(size)
		}
		o.Stride[d] = dense
		dense *= x.Args.Dims[d]
	}
}

// place moves to tile number u.
func (t *tile) place(u int64) {
	x := t.x
	if x.Cols {
		row, left := u/x.across, u%x.across*x.Tile
		t.n = min(x.width-left, x.Tile)
		t.first = row*x.width + left
		t.placeColumns(row, left)
		t.strips, t.columns = 1, t.n
	} else {
		t.first = u * x.Tile
		t.n = min(x.Outputs-t.first, x.Tile)
		t.strips, t.columns = t.n, 1
	}
	for i, o := range x.Operands {
		if x.transposes(i) {
			t.transpose(i, int64(o.DT.Size()))
		}
	}
	// Rows of temporaries are counted from the tile's first row, or from the launch's first row if
	// they are shared. Points are counted in the tile's domain.
	shift := int64(0)
	if x.Cols {
		shift += t.first
	}
	if t.own {
		shift -= t.first
	}
	for k := range x.Plan.Temps {
		o := &t.ops[x.nops+k]
		if o.Offset = shift; x.Plan.Temps[k].Row {
			continue
		}
		o.Offset *= x.reduced
		if x.Cols { // dense within the tile
			dense := t.n
			for d := t.points.Rank - 2; d >= 0; d-- {
				o.Stride[d] = dense
				dense *= t.points.Dims[d]
			}
		}
	}
}

// placeColumns sets the operands to columns from left on of the outer kept point row.
func (t *tile) placeColumns(row, left int64) {
	x := t.x
	outer, rank := x.Kept-1, x.Args.Rank
	for i := range t.ops[:x.nops] {
		from, o := &x.Args.Ops[i], &t.ops[i]
		at := row
		o.Offset = from.Offset + left*from.Stride[rank-1]
		for d := outer - 1; d >= 0; d-- {
			o.Offset += at % x.Args.Dims[d] * from.Stride[d]
			at /= x.Args.Dims[d]
		}
		copy(o.Stride[:rank-outer], from.Stride[outer:rank])
		o.Guard = from.Guard >> outer
	}
	t.points.Dims[t.points.Rank-1], t.rows.Dims[t.rows.Rank-1] = t.n, t.n
}

// transpose transposes the tile's rows of an operand, one contiguous range of the last kept dim at
// a time.
func (t *tile) transpose(i int, size int64) {
	x := t.x
	from, o := &x.Args.Ops[i], &t.ops[i]
	dims := &x.Args.Dims
	inner, last, ld := x.Args.Rank-1, x.Kept-1, x.pitch(size)
	width, n := dims[last], dims[inner]
	o.Offset = -t.first * ld
	for r, end := t.first, t.first+t.n; r < end; {
		m := min(width-r%width, end-r)
		at, rest := from.Offset+r%width*from.Stride[last], r/width
		for d := last - 1; d >= 0; d-- {
			at += rest % dims[d] * from.Stride[d]
			rest /= dims[d]
		}
		for p := int64(0); p < x.reduced; p += n {
			q := at
			rest = p / n
			for d := inner - 1; d > last; d-- {
				q += rest % dims[d] * from.Stride[d]
				rest /= dims[d]
			}
			to := unsafe.Add(o.Base, ((r-t.first)*ld+p)*size)
			operands.CopyTile(int(size), to, ld, from.Base, q, from.Stride[last], from.Stride[inner], m, n)
		}
		r += m
	}
}
