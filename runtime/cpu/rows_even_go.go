package cpu

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// evenTail is how many points a tail has at least for it to be worth it.
const evenTail = 2 * ir.FoldLanes

// evenPhase runs a phase of rows that end in points which are all alike, as scores do
// that a mask hides: what it makes of one of them it makes of all.
func (t *rowTile) evenPhase(ph *codegen.Phase, list []rowOp, code evaluator) {
	x := t.x
	tails := unsafe.Slice((*int64)(x.r.tails.at), x.outputs)
	for s := range t.strips {
		// One of the tail's points for every lane is evaluated.
		n := (tails[t.first+s]+ir.FoldLanes-1)/ir.FoldLanes*ir.FoldLanes + ir.FoldLanes
		if n+evenTail > x.reduced {
			n = x.reduced
		}
		t.startBlock(list)
		t.someOf(list, code, s, 0, n)
		same := n < x.reduced
		for k := 0; same && k < len(list); k++ {
			size := x.f.dtype[list[k].dt].size
			same = foldsAgain(list[k].op, size, unsafe.Add(t.bufs[k], (n-1)%rowChunk*size))
		}
		if same {
			t.repeat(ph, t.first+s, n)
		} else {
			t.someOf(list, code, s, n, x.reduced)
		}
		if len(list) > 0 {
			t.endBlock(list, s, 0, x.reduced)
		}
	}
}

// someOf evaluates and takes points [from, to) of a strip.
func (t *rowTile) someOf(list []rowOp, code evaluator, strip, from, to int64) {
	base := (t.first + strip) * t.x.reduced
	for r := from; r < to; r += rowChunk {
		m := min(to-r, rowChunk)
		code.eval(&t.points, base+r, base+r+m)
		for k := range list {
			t.take(list, k, strip, t.bufs[k], 1, r, m)
		}
	}
}

// foldsAgain reports that to fold a value, a float of so many bytes, a second time changes
// nothing.
func foldsAgain(op foldOp, size int64, value unsafe.Pointer) bool {
	if op != foldSum {
		return true // the greatest or the least
	}
	f := *(*float32)(value)
	if size == 8 {
		d := *(*float64)(value)
		return d == 0 || math.IsInf(d, 0) || math.IsNaN(d)
	}
	return f == 0 || math.IsInf(float64(f), 0) || f != f
}

// repeat stores in points [n, reduced) of a row what is stored in the one before.
func (t *rowTile) repeat(ph *codegen.Phase, row, n int64) {
	x := t.x
	for _, st := range ph.Stores {
		o, size := &t.ops[st.Operand], int64(ph.Operands[st.Operand].DT.Size())
		at, r := o.offset+n, row
		for d := x.kept - 1; d >= 0; d-- {
			at += r % x.args.dims[d] * o.stride[d]
			r /= x.args.dims[d]
		}
		// As many as there are lanes are there already; then twice as many.
		some := int64(ir.FoldLanes)
		all := unsafe.Slice((*byte)(unsafe.Add(o.base, (at-some)*size)), (some+x.reduced-n)*size)
		for done := some * size; done < int64(len(all)); {
			done += int64(copy(all[done:], all[:done]))
		}
	}
}
