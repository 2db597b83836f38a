package rows

import (
	"math/bits"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Folds of columns that are stored side by side. A lane of a fold is every ir.FoldLanes-th row,
// and lanes are joined in halves: lane 0 with lane 32, their sum with that of 16 and 48, and so
// on. This file computes lanes in the order of their bit-reversed numbers. Then few sums wait for
// their other half, one for each bit: for a tile of columns they fit in the first-level cache,
// where all lanes would not. The code that computes the rows stores a lane's first row at the
// place of its sum and joins the others to it.

// columnFold is the state of a fold of some columns of a tile.
type columnFold struct {
	t           *tile
	code        Code
	list        []Op
	at, columns int64
	whole       bool // the bottom sum is the result
}

// sumBytes bounds the bytes of one sum, to keep waiting sums in cache.
const sumBytes = 4 << 10

// foldColumns folds blocks of the tile's columns, some columns at a time, and at most most points
// per call.
func (t *tile) foldColumns(code Code, list []Op, from, to, most int64) {
	some := min(most, sumBytes/list[0].Size)
	f := columnFold{t: t, code: code, list: list, whole: t.own && t.x.blocks == 1}
	for b := from; b < to; b++ {
		first := b * ir.FoldBlock
		for f.at = 0; f.at < t.columns; f.at += some {
			f.columns = min(t.columns-f.at, some)
			f.block(first, min(t.x.reduced-first, ir.FoldBlock), most)
		}
		for k := 0; k < len(list) && !f.whole; k++ {
			t.joinBlock(list, k, 0, b, t.acc[k])
		}
	}
}

// block folds rows [first, first+rows), at most most points per call.
func (f *columnFold) block(first, rows, most int64) {
	bit := 0 // bits of the number of lanes
	for 1<<bit < min(rows, ir.FoldLanes) {
		bit++
	}
	top := int64(0) // number of waiting sums
	for i := range 1 << bit {
		lane := int64(bits.Reverse8(uint8(i)) >> (8 - bit))
		left, halves := i, lane < rows
		switch {
		case !halves:
		case i&1 == 1 && lane+ir.FoldLanes >= rows: // the lane has one row, which is joined directly to the waiting sum
			f.run(true, first+lane, 1, top-1)
			halves = false
		default:
			f.run(false, first+lane, 1, top)
			for r := lane + ir.FoldLanes; r < rows; {
				n := min((rows-r+ir.FoldLanes-1)/ir.FoldLanes, max(most/f.columns, 1))
				f.run(true, first+r, n, top)
				r += n * ir.FoldLanes
			}
		}
		for ; left&1 == 1; left >>= 1 {
			if top--; halves {
				f.join(top)
			}
			halves = true
		}
		top++
	}
}

// sum returns the address of sum number i of fold k.
func (f *columnFold) sum(k int, i int64) unsafe.Pointer {
	o := &f.list[k]
	if i == 0 && f.whole {
		return unsafe.Add(f.t.resultAt(o, 0, 0), f.at*o.Size)
	}
	return unsafe.Add(f.t.acc[k], (i*f.t.columns+f.at)*o.Size)
}

// join joins sum i+1 to sum i.
func (f *columnFold) join(i int64) {
	for k := range f.list {
		o := &f.list[k]
		fold := f.t.x.Folds.Of(o.Fold, o.DT)
		fold.Combine(f.sum(k, i), f.sum(k, i+1), f.columns)
		if f.t.x.Recorder != nil {
			recordCombine(f.t.x.Recorder, fold, f.sum(k, i), f.sum(k, i+1), f.columns)
		}
	}
}

// run computes n rows, every ir.FoldLanes-th from r on. Their values are stored at sum i of each
// fold, or joined to it.
func (f *columnFold) run(joins bool, r, n, i int64) {
	f.code.Move(r, f.at)
	for k := range f.list {
		f.code.Result(k, f.sum(k, i), 0)
	}
	f.code.Run(f.columns, n, joins)
}
