package cpu

import (
	"math/bits"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// Folds of columns that lie side by side. A lane of a fold is every ir.FoldLanes-th row, and
// lanes are joined in halves: lane 0 with lane 32, what comes of that with what comes of 16
// and 48, and so on. Taken in this order, which is that of the lanes' numbers with their bits
// reversed, few sums wait for their other half, one for each of those bits: of a tile of
// columns they stay in the first-level cache, where all of its lanes would not. A lane's first
// row is stored where its sum will be, the others are joined to it by the code that computes
// them.

// columnFold is a fold of some columns of a tile on its way.
type columnFold struct {
	t           *rowTile
	w           *foldWalk
	list        []rowOp
	at, columns int64
	whole       bool // what lies at the bottom is the result
}

// sumBytes is a sum of so many columns that those which wait stay near.
const sumBytes = 4 << 10

// foldColumns folds blocks of the tile's columns, some of them at a time, and no more than
// so many points a call.
func (t *rowTile) foldColumns(w *foldWalk, list []rowOp, from, to, most int64) {
	some := min(most, sumBytes/list[0].size)
	f := columnFold{t: t, w: w, list: list, whole: t.own && t.x.blocks == 1}
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

// block folds rows [first, first+rows), of so many points a call.
func (f *columnFold) block(first, rows, most int64) {
	bit := 0 // of the number of lanes
	for 1<<bit < min(rows, ir.FoldLanes) {
		bit++
	}
	top := int64(0) // sums that wait
	for i := range 1 << bit {
		lane := int64(bits.Reverse8(uint8(i)) >> (8 - bit))
		left, halves := i, lane < rows
		switch {
		case !halves:
		case i&1 == 1 && lane+ir.FoldLanes >= rows: // its only row is what the sum before waits for
			f.run(f.w.code, first+lane, 1, top-1)
			halves = false
		default:
			f.run(&f.w.p.whole, first+lane, 1, top)
			for r := lane + ir.FoldLanes; r < rows; {
				n := min((rows-r+ir.FoldLanes-1)/ir.FoldLanes, max(most/f.columns, 1))
				f.run(f.w.code, first+r, n, top)
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

// sum is sum number i of fold k.
func (f *columnFold) sum(k int, i int64) unsafe.Pointer {
	o := &f.list[k]
	if i == 0 && f.whole {
		return unsafe.Add(f.t.resultAt(o, 0, 0), f.at*o.size)
	}
	return unsafe.Add(f.t.acc[k], (i*f.t.columns+f.at)*o.size)
}

// join joins the sum above sum i to it.
func (f *columnFold) join(i int64) {
	for k := range f.list {
		o := &f.list[k]
		fold := f.t.x.f.of(o.op, o.dt)
		fold.combine(f.sum(k, i), f.sum(k, i+1), f.columns)
		if tape := f.t.points.tape; tape != nil {
			tape.combine(fold, f.sum(k, i), f.sum(k, i+1), f.columns)
		}
	}
}

// run computes every ir.FoldLanes-th row from r on, n of them, by one of the phase's
// functions: values are stored at sum i of each fold, or joined to it.
func (f *columnFold) run(code *machineCode, r, n, i int64) {
	w := f.w
	w.at[0], w.at[1] = f.at, r
	for k := range f.list {
		o := native.FrameArgs + (len(w.p.kernel.Operands)+k)*native.OperandBytes
		*word(w.frame, o+native.Address) = int64(uintptr(f.sum(k, i)))
	}
	*word(w.frame, native.FramePoints), *word(w.frame, native.FrameRows) = f.columns, n
	for _, i := range w.p.direct {
		*word(w.frame, native.FrameArgs+int(i)*native.OperandBytes+native.Address) = w.address(int(i))
	}
	if t := w.a.tape; t != nil {
		t.phase(&w.machineWalk, code)
	}
	machine.Call(code.entry, w.frame, w.p.mxcsr)
}

// readyColumns writes what is the same for all calls.
func (w *foldWalk) readyColumns(list []rowOp) {
	for _, i := range w.p.direct {
		*word(w.frame, native.FrameArgs+int(i)*native.OperandBytes+native.RowStep) *= ir.FoldLanes
	}
	for left := w.p.v.Ahead; left != 0; left &= left - 1 { // the next row of a call
		o := native.FrameArgs + bits.TrailingZeros64(left)*native.OperandBytes
		*word(w.frame, o+native.Ahead) = *word(w.frame, o+native.RowStep)
	}
	for k := range list {
		o := native.FrameArgs + (len(w.p.kernel.Operands)+k)*native.OperandBytes
		*word(w.frame, o+native.Step), *word(w.frame, o+native.RowStep) = list[k].size, 0
	}
}
