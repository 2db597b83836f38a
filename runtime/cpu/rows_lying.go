package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Folds of values that are stored in memory, a block or more in one call.

// columnsLying folds rows of a block of columns; it returns false if it cannot.
func (t *rowTile) columnsLying(list []rowOp, k int, block int64, values unsafe.Pointer, step, rows int64) bool {
	o := &list[k]
	f := t.x.f.of(o.op, o.dt)
	if t.columns == 1 || !o.folds() || f.columns == nil {
		return false
	}
	out, whole := t.acc[k], t.own && t.x.blocks == 1
	if whole {
		out = t.resultAt(o, 0, 0)
	}
	if !f.columns(out, t.acc[k], values, rows, t.columns, step) {
		return false
	}
	if tape := t.points.tape; tape != nil {
		tape.foldColumns(f, out, t.acc[k], values, o.load, rows, t.columns, step)
	}
	if !whole {
		t.joinBlock(list, k, 0, block, out)
	}
	return true
}

// rowsLying folds blocks [from, to) of all strips of rows. It returns false if it cannot, or if
// there are several folds, which should share one pass over the memory.
func (t *rowTile) rowsLying(list []rowOp, at *[maxReduces]lying, from, to int64) bool {
	x, o := t.x, &list[0]
	f := x.f.of(o.op, o.dt)
	if len(list) > 1 || !o.folds() || f.rows == nil || at[0].step != 1 {
		return false
	}
	if t.own && x.blocks == 1 {
		return x.reduced%ir.FoldLanes == 0 && t.wholeRowsLying(o, f, at)
	}
	x.args.tape.lose()
	whole := min(to, x.reduced/ir.FoldBlock)
	for s := range t.strips {
		row := t.stripStart(o, &at[0], s)
		for b := from; b < whole; {
			n, out, step := whole-b, t.acc[0], f.size
			if t.own {
				n = min(n, ir.FoldLanes)
			} else {
				out, step = t.partial(0, b, s), x.outputs*partBytes
			}
			if !f.rows(out, step, unsafe.Add(row, b*ir.FoldBlock*f.size), ir.FoldBlock*f.size, ir.FoldBlock, n) {
				return false
			}
			for i := int64(0); t.own && i < n; i++ {
				t.joinBlock(list, 0, s, b+i, unsafe.Add(out, i*step))
			}
			b += n
		}
		t.walkLying(list, at, s, max(from, whole), to)
	}
	return true
}

// wholeRowsLying is rowsLying for rows of at most a block: one call takes all rows that are at
// equal distances.
func (t *rowTile) wholeRowsLying(o *rowOp, f *folder, at *[maxReduces]lying) bool {
	x := t.x
	outStep := o.size
	if !x.plan.Temps[o.temp-x.nops].Row {
		outStep *= x.reduced
	}
	for s := int64(0); s < t.strips; {
		n, step := int64(1), int64(0)
		if x.kept > 0 {
			inner := x.args.dims[x.kept-1]
			n, step = min(t.strips-s, inner-(t.first+s)%inner), t.ops[o.load].stride[x.kept-1]*f.size
		}
		out, values := t.resultAt(o, s, 0), t.stripStart(o, &at[0], s)
		if !f.rows(out, outStep, values, step, x.reduced, n) {
			return false
		}
		if tape := t.points.tape; tape != nil {
			tape.foldRows(f, out, outStep, values, o.load, step, x.reduced, n)
		}
		s += n
	}
	return true
}
