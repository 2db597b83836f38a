package rows

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// rowPhase runs a phase whose points are rows.
func (t *tile) rowPhase(i int) {
	first := t.first
	if t.x.Cols {
		first = 0
	}
	t.rowPhases.Eval(i, first, first+t.n)
}

// pointPhase runs blocks [from, to) of all strips of a phase. If other threads share the tile,
// results of folds are stored as partial results.
func (t *tile) pointPhase(i int, from, to int64) {
	x := t.x
	if t.points.Ahead = nil; i == x.Look && t.own {
		t.points.Ahead = x.ahead
	}
	ph, list := &x.Plan.Phases[i], x.Plan.Ops[i]
	if x.reduced == 0 {
		x.lose()
		t.noPoints(list)
		return
	}
	if t.own && x.reduced <= ir.FoldBlock && len(x.Even) > 0 && x.Even[i] {
		x.lose()
		t.evenPhase(ph, list, i)
		return
	}
	if len(list) == 0 {
		first := int64(0)
		if !x.Cols {
			first = t.first * x.reduced
		}
		if !t.own && t.strips == 1 {
			end := min(to*ir.FoldBlock, x.reduced)
			t.pointPhases.Eval(i, first+from*ir.FoldBlock*t.columns, first+end*t.columns)
		} else {
			t.pointPhases.Eval(i, first, first+x.reduced*t.n)
		}
		return
	}
	var at [MaxOps]stored
	direct := len(ph.Stores) == 0
	for k := 0; direct && k < len(list); k++ {
		at[k], direct = t.storedAt(&list[k])
	}
	// Columns in memory are folded in memory order, because memory bandwidth limits them.
	if (!x.Cols || !direct) && (direct && t.storedRows(list, &at, from, to) || t.foldRows(list, i, from, to)) {
		return
	}
	if !direct && !x.Cols && x.reduced <= chunk/2 && t.own {
		t.shortRows(list, i)
		return
	}
	for s := range t.strips {
		if direct {
			t.walkStored(list, &at, s, from, to)
		} else {
			t.walk(list, i, s, from, to)
		}
	}
}

// walk evaluates blocks [from, to) of a strip in chunks and passes the values to the row ops.
func (t *tile) walk(list []Op, i int, strip, from, to int64) {
	x, n := t.x, t.columns
	base := int64(0)
	if !x.Cols {
		base = (t.first + strip) * x.reduced
	}
	step := max(chunk/n, 1)
	for b := from; b < to; b++ {
		first := b * ir.FoldBlock
		end := min(first+ir.FoldBlock, x.reduced)
		t.startBlock(list)
		for r := first; r < end; r += step {
			m := min(end-r, step)
			t.pointPhases.Eval(i, base+r*n, base+(r+m)*n)
			for k := range list {
				t.take(list, k, strip, t.bufs[k], n, r, m)
			}
		}
		t.endBlock(list, strip, b, end-first)
	}
}

// walkStored is walk for values in memory, which need no evaluation.
func (t *tile) walkStored(list []Op, at *[MaxOps]stored, strip, from, to int64) {
	x := t.x
	for b := from; b < to; b++ {
		first := b * ir.FoldBlock
		end := min(first+ir.FoldBlock, x.reduced)
		t.startBlock(list)
		for k := range list {
			values := unsafe.Add(t.stripStart(&list[k], &at[k], strip), first*at[k].step*x.Folds.DTypes[list[k].DT].Size)
			if !t.storedColumns(list, k, b, values, at[k].step, end-first) {
				t.take(list, k, strip, values, at[k].step, first, end-first)
				t.endFold(list, k, strip, b, end-first)
			}
		}
	}
}

// shortRows processes rows so short that many fit in a chunk: one evaluation serves many rows.
func (t *tile) shortRows(list []Op, i int) {
	x := t.x
	step := chunk / x.reduced
	for s := int64(0); s < t.strips; s += step {
		n := min(t.strips-s, step)
		t.pointPhases.Eval(i, (t.first+s)*x.reduced, (t.first+s+n)*x.reduced)
		for j := range n {
			t.startBlock(list)
			for k := range list {
				t.take(list, k, s+j, unsafe.Add(t.bufs[k], j*x.reduced*x.Folds.DTypes[list[k].DT].Size), 1, 0, x.reduced)
			}
			t.endBlock(list, s+j, 0, x.reduced)
		}
	}
}

// noPoints stores the results of folds of no points.
func (t *tile) noPoints(list []Op) {
	for k := range list {
		if o := &list[k]; o.Folds() {
			for j := range t.n {
				operands.SetElement(unsafe.Add(t.resultAt(o, 0, 0), j*o.Size), int32(o.Size), o.empty)
			}
		}
	}
}

// resultAt returns the address of the result for a point of a strip.
func (t *tile) resultAt(o *Op, strip, point int64) unsafe.Pointer {
	x, to := t.x, &t.ops[o.temp]
	at := to.Offset
	if !x.Cols {
		if row := t.first + strip; x.Plan.Temps[o.temp-x.nops].Row {
			at += row
		} else {
			at += row * x.reduced
		}
	}
	return unsafe.Add(to.Base, (at+point*t.columns)*o.Size)
}

// stored describes values that an operand holds: a row's elements are a fixed step apart.
type stored struct {
	p    unsafe.Pointer
	step int64
}

// storedAt returns where the values of a row op are stored; it returns false if they have to be
// evaluated.
func (t *tile) storedAt(r *Op) (at stored, ok bool) {
	x := t.x
	if r.Load < 0 || r.Class == ir.ClassSort || x.Folds.DTypes[r.DT].Widen != nil {
		return at, false
	}
	o := &t.ops[r.Load]
	first, end := x.Kept, t.points.Rank // the reduced dims
	if x.Cols {
		first, end = 0, end-1
	}
	if len(o.Stages) > 0 || x.Cols && o.Stride[end] != 1 && t.columns > 1 {
		return at, false
	}
	step, dense := int64(0), int64(0)
	for d := end - 1; d >= first; d-- {
		if t.points.Dims[d] == 1 {
			continue
		}
		if step == 0 {
			step, dense = o.Stride[d], o.Stride[d]
		}
		if o.Stride[d] != dense || dense == 0 {
			return at, false
		}
		dense *= t.points.Dims[d]
	}
	if r.Class == ir.ClassScan && step != t.columns || r.Class != ir.ClassScan && !x.Cols && step > 1 {
		return at, false
	}
	return stored{unsafe.Add(o.Base, o.Offset*x.Folds.DTypes[r.DT].Size), step}, true
}

// stripStart returns the address of a strip's first element in an operand.
func (t *tile) stripStart(r *Op, at *stored, strip int64) unsafe.Pointer {
	x, p, row := t.x, int64(0), t.first+strip
	if !x.Cols {
		for d := x.Kept - 1; d >= 0; d-- {
			p += row % x.Args.Dims[d] * t.ops[r.Load].Stride[d]
			row /= x.Args.Dims[d]
		}
	}
	return unsafe.Add(at.p, p*x.Folds.DTypes[r.DT].Size)
}

// take passes elements r to r+m-1 of a strip to row op k.
func (t *tile) take(list []Op, k int, strip int64, values unsafe.Pointer, step, r, m int64) {
	x, o, n := t.x, &list[k], t.columns
	dt := &x.Folds.DTypes[o.DT]
	if o.Class == ir.ClassSort {
		x.lose()
		memory.Copy(unsafe.Add(t.sorting[k], r*dt.Size), values, m*dt.Size)
		if r+m == x.reduced {
			o.sort.Row(t.resultAt(o, strip, 0), t.sorting[k], x.reduced, t.work)
		}
		return
	}
	if dt.Widen != nil {
		x.lose()
		dt.Widen(t.wide[k], values, m*n)
		values = t.wide[k]
	}
	f := x.Folds.Of(o.Fold, o.DT)
	switch {
	case o.total > 0:
		x.lose()
		t.takeTotal(o, f, values, (t.first+strip)*x.reduced+r, m)
	case o.Class != ir.ClassScan:
		f.Add(t.acc[k], values, r, m, n, step)
		if x.Recorder != nil {
			recordAdd(x.Recorder, f, t.acc[k], values, o.Load, r, m, n, step)
		}
	default:
		to, out := t.resultAt(o, strip, r), t.wide[k]
		if dt.Widen == nil {
			out = to
		}
		x.lose()
		f.Scan(out, values, t.acc[k], unsafe.Add(t.acc[k], memory.Aligned(n*8)), r, m, n)
		if dt.Narrow != nil {
			dt.Narrow(to, out, m*n)
		}
	}
}

// startBlock initializes lanes for a block of a strip.
func (t *tile) startBlock(list []Op) {
	if t.columns > 1 {
		return
	}
	for k := range list {
		if o := &list[k]; o.Folds() {
			f := t.x.Folds.Of(o.Fold, o.DT)
			f.Start(t.acc[k])
			if t.x.Recorder != nil {
				recordStart(t.x.Recorder, f, t.acc[k])
			}
		}
	}
}

// endBlock ends a block of a strip.
func (t *tile) endBlock(list []Op, strip, block, elems int64) {
	for k := range list {
		t.endFold(list, k, strip, block, elems)
	}
}

func (t *tile) endFold(list []Op, k int, strip, block, elems int64) {
	if o := &list[k]; o.Folds() {
		f := t.x.Folds.Of(o.Fold, o.DT)
		f.Finish(t.acc[k], elems, t.columns)
		if t.x.Recorder != nil {
			recordFinish(t.x.Recorder, f, t.acc[k], elems, t.columns)
		}
		t.joinBlock(list, k, strip, block, t.acc[k])
	}
}

// joinBlock adds a block's result of row op k to the total.
func (t *tile) joinBlock(list []Op, k int, strip, block int64, sum unsafe.Pointer) {
	o, last := &list[k], t.x.blocks-1
	f := t.x.Folds.Of(o.Fold, o.DT)
	if !t.own {
		t.x.lose()
		memory.Copy(t.partial(k, block, strip), sum, f.Size*t.columns)
		return
	}
	if last > 0 {
		t.x.lose()
		if block == 0 {
			memory.Copy(t.total[k], sum, f.Size*t.columns)
		} else {
			f.Combine(t.total[k], sum, t.columns)
		}
		sum = t.total[k]
	}
	if block == last {
		t.give(o, f, strip, sum)
	}
}

// give writes the results of a strip's folds.
func (t *tile) give(o *Op, f *fold.Folder, strip int64, total unsafe.Pointer) {
	out := t.resultAt(o, strip, 0)
	if narrow := t.x.Folds.DTypes[o.DT].Narrow; narrow != nil && f.Lanes > 1 {
		t.x.lose()
		narrow(out, total, t.columns)
	} else {
		f.Result(out, o.Size, total, t.columns)
		if t.x.Recorder != nil {
			recordResult(t.x.Recorder, f, out, o.Size, total, t.columns)
		}
	}
}

// partial returns the address of a partial result of the tile's strip.
func (t *tile) partial(k int, block, strip int64) unsafe.Pointer {
	x := t.x
	return unsafe.Add(x.partials, ((int64(k)*x.blocks+block)*x.Outputs+t.first+strip)*partBytes)
}

// combine combines the partial results of the tile's rows.
func (t *tile) combine(list []Op) {
	for k := range list {
		o := &list[k]
		if !o.Folds() {
			continue
		}
		f := t.x.Folds.Of(o.Fold, o.DT)
		for s := range t.strips {
			sum := t.partial(k, 0, s)
			for b := int64(1); b < t.x.blocks; b++ {
				f.Combine(sum, t.partial(k, b, s), t.columns)
			}
			t.give(o, f, s, sum)
		}
	}
}
