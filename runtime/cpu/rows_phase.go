package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// rowPhase runs a phase whose points are rows.
func (t *rowTile) rowPhase(i int) {
	first := t.first
	if t.x.cols {
		first = 0
	}
	t.x.r.evaluator(i).eval(&t.rows, first, first+t.n)
}

// pointPhase runs blocks [from, to) of all strips of a phase. If other threads share the tile,
// results of folds are stored as partial results.
func (t *rowTile) pointPhase(i int, from, to int64) {
	x := t.x
	if t.points.ahead = nil; i == x.look && t.own {
		t.points.ahead = x.ahead
	}
	ph, list, code := &x.plan.Phases[i], x.plan.rowOps[i], x.r.evaluator(i)
	if x.reduced == 0 {
		x.args.tape.lose()
		t.noPoints(list)
		return
	}
	if t.own && x.reduced <= ir.FoldBlock && x.r.even(ph) {
		x.args.tape.lose()
		t.evenPhase(ph, list, code)
		return
	}
	if len(list) == 0 {
		first := int64(0)
		if !x.cols {
			first = t.first * x.reduced
		}
		if !t.own && t.strips == 1 {
			end := min(to*ir.FoldBlock, x.reduced)
			code.eval(&t.points, first+from*ir.FoldBlock*t.columns, first+end*t.columns)
		} else {
			code.eval(&t.points, first, first+x.reduced*t.n)
		}
		return
	}
	var at [maxReduces]lying
	direct := len(ph.Stores) == 0
	for k := 0; direct && k < len(list); k++ {
		at[k], direct = t.lies(&list[k])
	}
	// Columns in memory are folded in memory order, because memory bandwidth limits them.
	if (!x.cols || !direct) && (direct && t.rowsLying(list, &at, from, to) || t.foldRows(list, code, from, to)) {
		return
	}
	if !direct && !x.cols && x.reduced <= rowChunk/2 && t.own {
		t.shortRows(list, code)
		return
	}
	for s := range t.strips {
		if direct {
			t.walkLying(list, &at, s, from, to)
		} else {
			t.walk(list, code, s, from, to)
		}
	}
}

// walk evaluates blocks [from, to) of a strip in chunks and passes the values to the row ops.
func (t *rowTile) walk(list []rowOp, code evaluator, strip, from, to int64) {
	x, n := t.x, t.columns
	base := int64(0)
	if !x.cols {
		base = (t.first + strip) * x.reduced
	}
	step := max(rowChunk/n, 1)
	for b := from; b < to; b++ {
		first := b * ir.FoldBlock
		end := min(first+ir.FoldBlock, x.reduced)
		t.startBlock(list)
		for r := first; r < end; r += step {
			m := min(end-r, step)
			code.eval(&t.points, base+r*n, base+(r+m)*n)
			for k := range list {
				t.take(list, k, strip, t.bufs[k], n, r, m)
			}
		}
		t.endBlock(list, strip, b, end-first)
	}
}

// walkLying is walk for values in memory, which need no evaluation.
func (t *rowTile) walkLying(list []rowOp, at *[maxReduces]lying, strip, from, to int64) {
	x := t.x
	for b := from; b < to; b++ {
		first := b * ir.FoldBlock
		end := min(first+ir.FoldBlock, x.reduced)
		t.startBlock(list)
		for k := range list {
			values := unsafe.Add(t.stripStart(&list[k], &at[k], strip), first*at[k].step*x.f.dtype[list[k].dt].size)
			if !t.columnsLying(list, k, b, values, at[k].step, end-first) {
				t.take(list, k, strip, values, at[k].step, first, end-first)
				t.endFold(list, k, strip, b, end-first)
			}
		}
	}
}

// shortRows processes rows so short that many fit in a chunk: one evaluation serves many rows.
func (t *rowTile) shortRows(list []rowOp, code evaluator) {
	x := t.x
	step := rowChunk / x.reduced
	for s := int64(0); s < t.strips; s += step {
		n := min(t.strips-s, step)
		code.eval(&t.points, (t.first+s)*x.reduced, (t.first+s+n)*x.reduced)
		for j := range n {
			t.startBlock(list)
			for k := range list {
				t.take(list, k, s+j, unsafe.Add(t.bufs[k], j*x.reduced*x.f.dtype[list[k].dt].size), 1, 0, x.reduced)
			}
			t.endBlock(list, s+j, 0, x.reduced)
		}
	}
}

// noPoints stores the results of folds of no points.
func (t *rowTile) noPoints(list []rowOp) {
	for k := range list {
		if o := &list[k]; o.folds() {
			for j := range t.n {
				storeElement(unsafe.Add(t.resultAt(o, 0, 0), j*o.size), int32(o.size), o.empty)
			}
		}
	}
}

// resultAt returns the address of the result for a point of a strip.
func (t *rowTile) resultAt(o *rowOp, strip, point int64) unsafe.Pointer {
	x, to := t.x, &t.ops[o.temp]
	at := to.offset
	if !x.cols {
		if row := t.first + strip; x.plan.Temps[o.temp-x.nops].Row {
			at += row
		} else {
			at += row * x.reduced
		}
	}
	return unsafe.Add(to.base, (at+point*t.columns)*o.size)
}

// lying describes values that are stored in an operand: a row's elements are a fixed step apart.
type lying struct {
	p    unsafe.Pointer
	step int64
}

// lies returns where the values of a row op are stored; it returns false if they have to be
// evaluated.
func (t *rowTile) lies(r *rowOp) (at lying, ok bool) {
	x := t.x
	if r.load < 0 || r.class == ir.ClassSort || x.f.dtype[r.dt].widen != nil {
		return at, false
	}
	o := &t.ops[r.load]
	first, end := x.kept, t.points.rank // the reduced dims
	if x.cols {
		first, end = 0, end-1
	}
	if len(o.stages) > 0 || x.cols && o.stride[end] != 1 && t.columns > 1 {
		return at, false
	}
	step, dense := int64(0), int64(0)
	for d := end - 1; d >= first; d-- {
		if t.points.dims[d] == 1 {
			continue
		}
		if step == 0 {
			step, dense = o.stride[d], o.stride[d]
		}
		if o.stride[d] != dense || dense == 0 {
			return at, false
		}
		dense *= t.points.dims[d]
	}
	if r.class == ir.ClassScan && step != t.columns || r.class != ir.ClassScan && !x.cols && step > 1 {
		return at, false
	}
	return lying{unsafe.Add(o.base, o.offset*x.f.dtype[r.dt].size), step}, true
}

// stripStart returns the address of a strip's first element in an operand.
func (t *rowTile) stripStart(r *rowOp, at *lying, strip int64) unsafe.Pointer {
	x, p, row := t.x, int64(0), t.first+strip
	if !x.cols {
		for d := x.kept - 1; d >= 0; d-- {
			p += row % x.args.dims[d] * t.ops[r.load].stride[d]
			row /= x.args.dims[d]
		}
	}
	return unsafe.Add(at.p, p*x.f.dtype[r.dt].size)
}

// take passes elements r to r+m-1 of a strip to row op k.
func (t *rowTile) take(list []rowOp, k int, strip int64, values unsafe.Pointer, step, r, m int64) {
	x, o, n := t.x, &list[k], t.columns
	dt := &x.f.dtype[o.dt]
	tape := t.points.tape
	if o.class == ir.ClassSort {
		tape.lose()
		copyMemory(unsafe.Add(t.sorting[k], r*dt.size), values, m*dt.size)
		if r+m == x.reduced {
			sortRow(o, t.resultAt(o, strip, 0), t.sorting[k], x.reduced, t.work)
		}
		return
	}
	if dt.widen != nil {
		tape.lose()
		dt.widen(t.wide[k], values, m*n)
		values = t.wide[k]
	}
	f := x.f.of(o.op, o.dt)
	switch {
	case o.total > 0:
		tape.lose()
		t.takeTotal(o, f, values, (t.first+strip)*x.reduced+r, m)
	case o.class != ir.ClassScan:
		f.add(t.acc[k], values, r, m, n, step)
		if tape != nil {
			tape.fold(f, t.acc[k], values, o.load, r, m, n, step)
		}
	default:
		to, out := t.resultAt(o, strip, r), t.wide[k]
		if dt.widen == nil {
			out = to
		}
		tape.lose()
		f.scan(out, values, t.acc[k], unsafe.Add(t.acc[k], aligned(n*8)), r, m, n)
		if dt.narrow != nil {
			dt.narrow(to, out, m*n)
		}
	}
}

// startBlock initializes lanes for a block of a strip.
func (t *rowTile) startBlock(list []rowOp) {
	if t.columns > 1 {
		return
	}
	for k := range list {
		if o := &list[k]; o.folds() {
			f := t.x.f.of(o.op, o.dt)
			f.start(t.acc[k])
			if tape := t.points.tape; tape != nil {
				tape.start(f, t.acc[k])
			}
		}
	}
}

// endBlock ends a block of a strip.
func (t *rowTile) endBlock(list []rowOp, strip, block, elems int64) {
	for k := range list {
		t.endFold(list, k, strip, block, elems)
	}
}

func (t *rowTile) endFold(list []rowOp, k int, strip, block, elems int64) {
	if o := &list[k]; o.folds() {
		f := t.x.f.of(o.op, o.dt)
		f.finish(t.acc[k], elems, t.columns)
		if tape := t.points.tape; tape != nil {
			tape.finish(f, t.acc[k], elems, t.columns)
		}
		t.joinBlock(list, k, strip, block, t.acc[k])
	}
}

// joinBlock adds a block's result of row op k to the total.
func (t *rowTile) joinBlock(list []rowOp, k int, strip, block int64, sum unsafe.Pointer) {
	o, last := &list[k], t.x.blocks-1
	f := t.x.f.of(o.op, o.dt)
	tape := t.points.tape
	if !t.own {
		tape.lose()
		copyMemory(t.partial(k, block, strip), sum, f.size*t.columns)
		return
	}
	if last > 0 {
		tape.lose()
		if block == 0 {
			copyMemory(t.total[k], sum, f.size*t.columns)
		} else {
			f.combine(t.total[k], sum, t.columns)
		}
		sum = t.total[k]
	}
	if block == last {
		t.give(o, f, strip, sum)
	}
}

// give writes the results of a strip's folds.
func (t *rowTile) give(o *rowOp, f *folder, strip int64, total unsafe.Pointer) {
	out := t.resultAt(o, strip, 0)
	tape := t.points.tape
	if narrow := t.x.f.dtype[o.dt].narrow; narrow != nil && f.lanes > 1 {
		tape.lose()
		narrow(out, total, t.columns)
	} else {
		f.result(out, o.size, total, t.columns)
		if tape != nil {
			tape.result(f, out, o.size, total, t.columns)
		}
	}
}

// partial returns the address of a partial result of the tile's strip.
func (t *rowTile) partial(k int, block, strip int64) unsafe.Pointer {
	x := t.x
	return unsafe.Add(x.partials, ((int64(k)*x.blocks+block)*x.outputs+t.first+strip)*partBytes)
}

// combine combines the partial results of the tile's rows.
func (t *rowTile) combine(list []rowOp) {
	for k := range list {
		o := &list[k]
		if !o.folds() {
			continue
		}
		f := t.x.f.of(o.op, o.dt)
		for s := range t.strips {
			sum := t.partial(k, 0, s)
			for b := int64(1); b < t.x.blocks; b++ {
				f.combine(sum, t.partial(k, b, s), t.columns)
			}
			t.give(o, f, s, sum)
		}
	}
}

func copyMemory(to, from unsafe.Pointer, n int64) {
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}
