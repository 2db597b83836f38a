package rows

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
)

// Folds of values that are stored in memory, a block or more in one call.

// storedColumns folds rows of a block of columns; it returns false if it cannot.
func (t *tile) storedColumns(list []Op, k int, block int64, values unsafe.Pointer, step, rows int64) bool {
	o := &list[k]
	f := t.x.Folds.Of(o.Fold, o.DT)
	if t.columns == 1 || !o.Folds() || f.Columns == nil {
		return false
	}
	out, whole := t.acc[k], t.own && t.x.blocks == 1
	if whole {
		out = t.resultAt(o, 0, 0)
	}
	if !f.Columns(out, t.acc[k], values, rows, t.columns, step) {
		return false
	}
	if t.x.Recorder != nil {
		recordColumns(t.x.Recorder, f, out, t.acc[k], values, o.Load, rows, t.columns, step)
	}
	if !whole {
		t.joinBlock(list, k, 0, block, out)
	}
	return true
}

// storedRows folds blocks [from, to) of all strips of rows. It returns false if it cannot, or if
// there are several folds, which should share one pass over the memory.
func (t *tile) storedRows(list []Op, at *[MaxOps]stored, from, to int64) bool {
	x, o := t.x, &list[0]
	f := x.Folds.Of(o.Fold, o.DT)
	if len(list) > 1 || !o.Folds() || f.Rows == nil || at[0].step != 1 {
		return false
	}
	if t.own && x.blocks == 1 {
		return x.reduced%ir.FoldLanes == 0 && t.wholeStoredRows(o, f, at)
	}
	x.lose()
	whole := min(to, x.reduced/ir.FoldBlock)
	for s := range t.strips {
		row := t.stripStart(o, &at[0], s)
		for b := from; b < whole; {
			n, out, step := whole-b, t.acc[0], f.Size
			if t.own {
				n = min(n, ir.FoldLanes)
			} else {
				out, step = t.partial(0, b, s), x.Outputs*partBytes
			}
			if !f.Rows(out, step, unsafe.Add(row, b*ir.FoldBlock*f.Size), ir.FoldBlock*f.Size, ir.FoldBlock, n) {
				return false
			}
			for i := int64(0); t.own && i < n; i++ {
				t.joinBlock(list, 0, s, b+i, unsafe.Add(out, i*step))
			}
			b += n
		}
		t.walkStored(list, at, s, max(from, whole), to)
	}
	return true
}

// wholeStoredRows is storedRows for rows of at most a block: one call takes all rows that are at
// equal distances.
func (t *tile) wholeStoredRows(o *Op, f *fold.Folder, at *[MaxOps]stored) bool {
	x := t.x
	outStep := o.Size
	if !x.Plan.Temps[o.temp-x.nops].Row {
		outStep *= x.reduced
	}
	for s := int64(0); s < t.strips; {
		n, step := int64(1), int64(0)
		if x.Kept > 0 {
			inner := x.Args.Dims[x.Kept-1]
			n, step = min(t.strips-s, inner-(t.first+s)%inner), t.ops[o.Load].Stride[x.Kept-1]*f.Size
		}
		out, values := t.resultAt(o, s, 0), t.stripStart(o, &at[0], s)
		if !f.Rows(out, outStep, values, step, x.reduced, n) {
			return false
		}
		if x.Recorder != nil {
			recordRows(x.Recorder, f, out, outStep, values, o.Load, step, x.reduced, n)
		}
		s += n
	}
	return true
}
