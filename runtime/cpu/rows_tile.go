package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// rowTile is a tile on which a thread works. Its pointers refer to the thread's memory, except the
// operands, which must be visible to the garbage collector.
type rowTile struct {
	x               *rowJob
	points, rows    args // arguments of the phases of each level
	ops             []operand
	first, n        int64 // rows of the tile: the first one, and their number
	strips, columns int64
	own             bool // the temporaries belong to this tile alone
	bufs            [maxReduces]unsafe.Pointer
	sorting         [maxReduces]unsafe.Pointer // a row's values
	work            unsafe.Pointer             // memory of a sort
	wide            [maxReduces]unsafe.Pointer // values in their compute dtype
	acc             [maxReduces]unsafe.Pointer
	total           [maxReduces]unsafe.Pointer
	open            unsafe.Pointer // lanes of totals, for the current block
	from, to        int64          // points of the share
	folding         *foldWalk      // of the thread
}

const (
	// rowChunk is the number of points evaluated at a time for a fold, so that their values stay
	// in the first-level cache. It is a multiple of the lanes and of a scan's blocks, and divides
	// a block.
	rowChunk = 2048
	// overrun is the number of bytes that block functions read and write past the end: they
	// process whole groups.
	overrun = groupLen * 8
	// openBytes is the bytes of the lanes of a total.
	openBytes = 8 * ir.FoldLanes
	// spareLanes is the extra room, in lanes, that folds of columns use.
	spareLanes = 8
	// partBytes is the most bytes that a block's fold result takes.
	partBytes = 16
)

// rowNeeds is the most bytes that a row op of any phase needs, by purpose, and the most row ops of
// a phase.
type rowNeeds struct{ count, chunk, acc, total, scratch, sort, work int64 }

func aligned(n int64) int64 { return (n + 63) &^ 63 }

// measure computes the size of a thread's memory.
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

// tempBytes returns the memory of temporary k with so many rows.
func (x *rowJob) tempBytes(rows int64, k int) int64 {
	t := &x.plan.Temps[k]
	if !t.Row {
		rows *= x.reduced
	}
	return aligned(rows*int64(t.DT.Size()) + overrun)
}

// pitch returns the number of elements from one row of a transposed operand to the next. It avoids
// rows of whole pages, which would map to few lines of the first-level cache.
func (x *rowJob) pitch(size int64) int64 { return (x.reduced+63)/64*64 + 64/size }

func (x *rowJob) transposedBytes(size int64) int64 {
	return aligned(x.tile*x.pitch(size)*size + overrun)
}

// makeTile divides a thread's memory into a tile's parts; it returns nil if memory is refused.
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

// forget drops the pointers that would keep memory alive.
func (t *rowTile) forget() {
	clear(t.ops)
	clear(t.points.merged[:])
	*t = rowTile{ops: t.ops[:0]}
}

// placeTemps sets the operands of the temporaries, whose memory begins at base and holds so many
// rows.
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

// placeTransposed makes an operand refer to the memory of its transposed rows.
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
	// Rows of temporaries are counted from the tile's first row, or from the launch's first row if
	// they are shared. Points are counted in the tile's domain.
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

// placeColumns sets the operands to columns from left on of the outer kept point row.
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

// transpose transposes the tile's rows of an operand, one contiguous range of the last kept dim at
// a time.
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
