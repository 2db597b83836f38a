package rows

import (
	"math"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
)

// evenTail is the least number of points of a tail for which the shortcut pays.
const evenTail = 2 * ir.FoldLanes

// evenPhase runs a phase of rows whose tails are identical points, as masked scores are. It
// computes a few of these points and reuses the result for the rest.
func (t *tile) evenPhase(ph *codegen.Phase, list []Op, i int) {
	x := t.x
	if t.evenByMachine(ph, list, i) {
		return
	}
	for s := range t.strips {
		n := t.evenPoints(s)
		t.startBlock(list)
		t.someOf(list, i, s, 0, n)
		same := n < x.reduced
		for k := 0; same && k < len(list); k++ {
			size := x.Folds.DTypes[list[k].DT].Size
			same = foldsAgain(list[k].Fold, size, unsafe.Add(t.bufs[k], (n-1)%chunk*size))
		}
		if same {
			t.repeat(ph, t.first+s, n)
		} else {
			t.someOf(list, i, s, n, x.reduced)
		}
		if len(list) > 0 {
			t.endBlock(list, s, 0, x.reduced)
		}
	}
}

// evenPoints returns the number of points of a strip to evaluate: up to the tail, and then one
// point for every lane.
func (t *tile) evenPoints(strip int64) int64 {
	n := (t.x.Tails[t.first+strip] + 2*ir.FoldLanes - 1) / ir.FoldLanes * ir.FoldLanes
	if n+evenTail > t.x.reduced {
		return t.x.reduced
	}
	return n
}

// evenByMachine is evenPhase by machine code. One call takes several strips if they have the same
// number of points to evaluate. It returns false if there is no code for that.
func (t *tile) evenByMachine(ph *codegen.Phase, list []Op, phase int) bool {
	x, folds := t.x, len(list) > 0
	code := x.host.Code(t.who, phase)
	if code == nil {
		return false
	}
	defer code.Close()
	var stored [MaxOps]int // the temporaries that hold the folded values; 0 if not needed
	switch {
	case x.Cols || x.reduced > code.Points(folds) || folds && !t.keepsFolded(ph, list, &stored):
		return false
	case !code.Open(x.Kept, false, folds):
		return false
	}
	for s := int64(0); s < t.strips; {
		n, rows := t.evenPoints(s), int64(1)
		code.Move(t.first+s, 0)
		for most := min(t.strips-s, code.Rows(n)); rows < most && t.evenPoints(s+rows) == n; {
			rows++
		}
		t.foldInto(code, list, s)
		code.Run(n, rows, folds)
		for r := t.first + s; n < x.reduced && r < t.first+s+rows; r++ {
			same := true
			for k := 0; same && k < len(list); k++ {
				same = stored[k] == 0 || foldsAgain(list[k].Fold, list[k].Size, t.pointAt(stored[k], list[k].Size, r, n-1))
			}
			if same {
				t.repeat(ph, r, n)
				continue
			}
			code.Move(r, 0)
			t.foldInto(code, list, r-t.first)
			code.Run(x.reduced, 1, folds)
		}
		s += rows
	}
	return true
}

// keepsFolded finds the temporaries that store the folded values of sums. It returns false if a
// value is not stored, or if a phase may overwrite its own input: the phase may have to run again.
func (t *tile) keepsFolded(ph *codegen.Phase, list []Op, stored *[MaxOps]int) bool {
	for _, st := range ph.Stores {
		reads := func(in ir.Instr) bool { return in.Op == ir.Load && int(uint32(in.Imm)) == st.Operand }
		if st.Operand < t.x.nops || slices.ContainsFunc(ph.Body, reads) {
			return false
		}
	}
	for k := range list {
		if list[k].Fold != fold.Sum {
			continue
		}
		for _, st := range ph.Stores {
			if st.Value == ph.Reduces[k].Value {
				stored[k] = st.Operand
			}
		}
		if stored[k] == 0 {
			return false
		}
	}
	return true
}

// pointAt returns the address of a point of a row in an operand; the points of a row are
// neighbours.
func (t *tile) pointAt(operand int, size, row, point int64) unsafe.Pointer {
	o := &t.ops[operand]
	at := o.Offset + point
	for d := t.x.Kept - 1; d >= 0; d-- {
		at += row % t.x.Args.Dims[d] * o.Stride[d]
		row /= t.x.Args.Dims[d]
	}
	return unsafe.Add(o.Base, at*size)
}

// someOf evaluates points [from, to) of a strip and passes them to the row ops.
func (t *tile) someOf(list []Op, i int, strip, from, to int64) {
	base := (t.first + strip) * t.x.reduced
	for r := from; r < to; r += chunk {
		m := min(to-r, chunk)
		t.pointPhases.Eval(i, base+r, base+r+m)
		for k := range list {
			t.take(list, k, strip, t.bufs[k], 1, r, m)
		}
	}
}

// foldsAgain reports that folding a value, a float of size bytes, once more changes nothing.
func foldsAgain(op fold.Op, size int64, value unsafe.Pointer) bool {
	if op != fold.Sum {
		return true // maximum and minimum are idempotent
	}
	f := *(*float32)(value)
	if size == 8 {
		d := *(*float64)(value)
		return d == 0 || math.IsInf(d, 0) || math.IsNaN(d)
	}
	return f == 0 || math.IsInf(float64(f), 0) || f != f
}

// repeat copies the stored value of point n-1 of a row to points [n, reduced).
func (t *tile) repeat(ph *codegen.Phase, row, n int64) {
	x := t.x
	for _, st := range ph.Stores {
		size := int64(ph.Operands[st.Operand].DT.Size())
		// The last ir.FoldLanes points are stored already. Each copy doubles the stored part.
		some := int64(ir.FoldLanes)
		all := unsafe.Slice((*byte)(t.pointAt(st.Operand, size, row, n-some)), (some+x.reduced-n)*size)
		for done := some * size; done < int64(len(all)); {
			done += int64(copy(all[done:], all[:done]))
		}
	}
}
