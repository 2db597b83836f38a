package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// rowTile is a tile on its way through the phases. What it points to is in its thread's
// memory, but for the operands, which the collector has to see.
type rowTile struct {
	x               *rowJob
	points, rows    args // what phases of either level are evaluated with
	ops             []operand
	first, n        int64 // rows
	strips, columns int64
	own             bool // the temporaries are this tile's alone
	bufs            [maxReduces]unsafe.Pointer
	sorting         [maxReduces]unsafe.Pointer // a row's values
	work            unsafe.Pointer             // of a sort
	wide            [maxReduces]unsafe.Pointer // values in the dtype that computes them
	acc             [maxReduces]unsafe.Pointer
	total           [maxReduces]unsafe.Pointer
	open            unsafe.Pointer // lanes of totals, of the block at hand
	from, to        int64          // points of the share
	folding         *foldWalk      // of the thread
}

const (
	// rowChunk is how many points are evaluated at a time for a fold, so that their values
	// stay in the first-level cache. A multiple of the lanes and of a scan's blocks that
	// divides a block.
	rowChunk = 2048
	// overrun is what block functions read and write behind the end: they do whole groups.
	overrun = groupLen * 8
	// openBytes are the lanes of a total.
	openBytes = 8 * ir.FoldLanes
	// spareLanes are what folds of columns have room for beside their lanes.
	spareLanes = 8
	// partBytes is the most that a fold of a block is.
	partBytes = 16
)

// rowNeeds is the most that one of a phase's row ops takes, in bytes, and how many there
// are.
type rowNeeds struct{ count, chunk, acc, total, scratch, sort, work int64 }

func aligned(n int64) int64 { return (n + 63) &^ 63 }

// measure finds out what a thread's memory has to hold.
func (x *rowJob) measure() {
	n := rowNeeds{chunk: aligned(8 * max(rowChunk, x.columns)), total: aligned(partBytes * x.columns)}
	lanes := int64(ir.FoldLanes)
	if x.columns > 1 {
		lanes = min(lanes, x.reduced) + spareLanes
	}
	for i, list := range x.plan.rowOps {
		n.scratch = max(n.scratch, x.r.evaluator(i).scratch())
		n.count = max(n.count, int64(len(list)))
		for k := range list {
			switch o := &list[k]; o.class {
			case ir.ClassSort:
				n.sort, n.work = aligned(x.reduced*8), aligned(sortBytes(x.reduced))
			case ir.ClassScan:
				n.acc = max(n.acc, 2*aligned(x.columns*8))
			default:
				f, rows := x.f.of(o.op, o.dt), lanes
				if f.lanes == 1 {
					rows = 1
				}
				n.acc = max(n.acc, f.size*max(ir.FoldLanes, rows*x.columns))
			}
		}
	}
	n.acc, n.scratch = aligned(n.acc), aligned(n.scratch)
	x.needs = n
	x.room = n.count*(2*n.chunk+n.acc+n.total+n.sort) + int64(x.plan.totals)*openBytes + n.work + n.scratch + 64
	for k := range x.plan.Temps {
		if !x.r.split {
			x.room += x.tempBytes(x.tile, k)
		}
	}
	for i, o := range x.r.p.kernel.Operands {
		if x.r.transposed.has(i) {
			x.room += x.transposedBytes(int64(o.DT.Size()))
		}
	}
}

// tempBytes is the memory of a temporary of so many rows.
func (x *rowJob) tempBytes(rows int64, k int) int64 {
	t := &x.plan.Temps[k]
	if !t.Row {
		rows *= x.reduced
	}
	return aligned(rows*int64(t.DT.Size()) + overrun)
}

// pitch is the number of elements from one row of a transposed operand to the next: rows
// a whole number of pages long would meet in a few lines of the first-level cache.
func (x *rowJob) pitch(size int64) int64 { return (x.reduced+63)/64*64 + 64/size }

func (x *rowJob) transposedBytes(size int64) int64 {
	return aligned(x.tile*x.pitch(size)*size + overrun)
}

// makeTile cuts up a thread's memory; nil where it is refused.
func (x *rowJob) makeTile(who int) *rowTile {
	m := &x.e.memory[who]
	s := m.reserve(x.room)
	if s == nil {
		x.e.failed.Store(true)
		return nil
	}
	x.args.tape.region(s, x.room)
	cut := func(n int64) unsafe.Pointer {
		p := s
		s = unsafe.Add(s, n)
		return p
	}
	t, n := &m.tile, &x.needs
	ops := append(t.ops[:0], x.args.ops...)
	for range x.plan.Temps {
		ops = append(ops, operand{})
	}
	*t = rowTile{x: x, ops: ops, own: !x.r.split, folding: &m.folding}
	for k := range n.count {
		t.bufs[k], t.wide[k] = cut(n.chunk), cut(n.chunk)
		t.acc[k], t.total[k], t.sorting[k] = cut(n.acc), cut(n.total), cut(n.sort)
	}
	t.open, t.work = cut(int64(x.plan.totals)*openBytes), cut(n.work)
	t.points = x.args
	t.points.ops, t.points.values = ops, &m.values
	t.points.scratch = unsafe.Slice((*byte)(cut(n.scratch)), n.scratch)
	t.rows = t.points
	t.points.bufs = t.bufs[:]
	clear(m.merged[:])
	t.points.merged, t.rows.merged = &m.merged, &m.merged
	if !x.cols {
		if t.rows.rank = max(x.kept, 1); x.kept == 0 {
			t.rows.dims[0] = 1
		}
	} else {
		outer := x.kept - 1
		rank := x.args.rank - outer
		t.points.rank, t.rows.rank = rank, rank
		for d := range rank {
			t.points.dims[d], t.rows.dims[d] = x.args.dims[d+outer], 1
		}
	}
	for i, o := range x.r.p.kernel.Operands {
		if x.r.transposed.has(i) {
			t.placeTransposed(i, int64(o.DT.Size()), cut(x.transposedBytes(int64(o.DT.Size()))))
		}
	}
	if x.r.split {
		t.placeTemps(x.shared, x.outputs)
	} else {
		t.placeTemps(s, x.tile)
	}
	return t
}

// forget drops what the collector would keep for it.
func (t *rowTile) forget() {
	clear(t.ops)
	clear(t.points.merged[:])
	*t = rowTile{ops: t.ops[:0]}
}

// placeTemps sets the operands of the temporaries, whose memory begins at base and holds
// so many rows.
func (t *rowTile) placeTemps(base unsafe.Pointer, rows int64) {
	x := t.x
	for k := range x.plan.Temps {
		o := &t.ops[x.nops+k]
		o.base = base
		base = unsafe.Add(base, x.tempBytes(rows, k))
		dense := int64(1)
		for d := t.points.rank - 1; d >= 0; d-- {
			kept := d < x.kept
			if x.cols {
				kept = d == t.points.rank-1
			}
			if x.plan.Temps[k].Row && !kept {
				continue
			}
			if o.stride[d] = dense; !x.cols || !kept {
				dense *= t.points.dims[d]
			}
		}
	}
}

// placeTransposed has an operand read where its transposed rows will be.
func (t *rowTile) placeTransposed(i int, size int64, base unsafe.Pointer) {
	x, o := t.x, &t.ops[i]
	o.base = base
	dense := int64(1)
	for d := x.args.rank - 1; d >= 0; d-- {
		if d == x.kept-1 {
			dense = x.pitch(size)
		}
		o.stride[d] = dense
		dense *= x.args.dims[d]
	}
}

// place moves to tile number u.
func (t *rowTile) place(u int64) {
	x := t.x
	if x.cols {
		row, left := u/x.across, u%x.across*x.tile
		t.n = min(x.width-left, x.tile)
		t.first = row*x.width + left
		t.placeColumns(row, left)
		t.strips, t.columns = 1, t.n
	} else {
		t.first = u * x.tile
		t.n = min(x.outputs-t.first, x.tile)
		t.strips, t.columns = t.n, 1
	}
	for i, o := range x.r.p.kernel.Operands {
		if x.r.transposed.has(i) {
			t.transpose(i, int64(o.DT.Size()))
		}
	}
	// Rows of temporaries are counted from the tile's first, or from the launch's where
	// they are shared; points from the tile's domain.
	shift := int64(0)
	if x.cols {
		shift += t.first
	}
	if t.own {
		shift -= t.first
	}
	for k := range x.plan.Temps {
		o := &t.ops[x.nops+k]
		if o.offset = shift; x.plan.Temps[k].Row {
			continue
		}
		o.offset *= x.reduced
		if x.cols { // dense within the tile
			dense := t.n
			for d := t.points.rank - 2; d >= 0; d-- {
				o.stride[d] = dense
				dense *= t.points.dims[d]
			}
		}
	}
}

// placeColumns has the operands be columns from left on of the outer kept point row.
func (t *rowTile) placeColumns(row, left int64) {
	x := t.x
	outer, rank := x.kept-1, x.args.rank
	for i := range t.ops[:x.nops] {
		from, o := &x.args.ops[i], &t.ops[i]
		at := row
		o.offset = from.offset + left*from.stride[rank-1]
		for d := outer - 1; d >= 0; d-- {
			o.offset += at % x.args.dims[d] * from.stride[d]
			at /= x.args.dims[d]
		}
		copy(o.stride[:rank-outer], from.stride[outer:rank])
		o.guard = from.guard >> outer
	}
	t.points.dims[t.points.rank-1], t.rows.dims[t.rows.rank-1] = t.n, t.n
}

// transpose transposes what the tile's rows have of an operand: those of one stretch
// along the last kept dim at a time.
func (t *rowTile) transpose(i int, size int64) {
	x := t.x
	from, o := &x.args.ops[i], &t.ops[i]
	dims := &x.args.dims
	inner, last, ld := x.args.rank-1, x.kept-1, x.pitch(size)
	width, n := dims[last], dims[inner]
	o.offset = -t.first * ld
	for r, end := t.first, t.first+t.n; r < end; {
		m := min(width-r%width, end-r)
		at, rest := from.offset+r%width*from.stride[last], r/width
		for d := last - 1; d >= 0; d-- {
			at += rest % dims[d] * from.stride[d]
			rest /= dims[d]
		}
		for p := int64(0); p < x.reduced; p += n {
			q := at
			rest = p / n
			for d := inner - 1; d > last; d-- {
				q += rest % dims[d] * from.stride[d]
				rest /= dims[d]
			}
			to := unsafe.Add(o.base, ((r-t.first)*ld+p)*size)
			gatherTile(int(size), to, ld, from.base, q, from.stride[last], from.stride[inner], m, n)
		}
		r += m
	}
}
