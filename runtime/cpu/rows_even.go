package cpu

import (
	"math"
	goruntime "runtime"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// evenTail is the least number of points of a tail for which the shortcut pays.
const evenTail = 2 * ir.FoldLanes

// evenPhase runs a phase of rows whose tails are identical points, as masked scores are. It
// computes a few of these points and reuses the result for the rest.
func (t *rowTile) evenPhase(ph *codegen.Phase, list []rowOp, code evaluator) {
	x := t.x
	if t.evenByMachine(ph, list, code) {
		return
	}
	for s := range t.strips {
		n := t.evenPoints(s)
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

// evenPoints returns the number of points of a strip to evaluate: up to the tail, and then one
// point for every lane.
func (t *rowTile) evenPoints(strip int64) int64 {
	tails := unsafe.Slice((*int64)(t.x.r.tails.at), t.x.outputs)
	n := roundUp(tails[t.first+strip], ir.FoldLanes) + ir.FoldLanes
	if n+evenTail > t.x.reduced {
		return t.x.reduced
	}
	return n
}

// evenByMachine is evenPhase by machine code. One call takes several strips if they have the same
// number of points to evaluate. It returns false if there is no code for that.
func (t *rowTile) evenByMachine(ph *codegen.Phase, list []rowOp, e evaluator) bool {
	x := t.x
	p, ok := e.(*machinePhase)
	if !ok || x.cols || len(p.staged)+len(p.boxed) > 0 || x.reduced > p.chunk {
		return false
	}
	code := &p.whole
	var stored [maxReduces]int // the temporaries that hold the folded values; 0 if not needed
	if len(list) > 0 {
		if code = p.folds; code == nil || x.reduced > p.foldPoints() || !t.keepsFolded(ph, list, &stored) {
			return false
		}
	}
	w := t.folding
	defer w.forget()
	if !w.open(t, p, code) {
		return false
	}
	for s := int64(0); s < t.strips; {
		n, rows := t.evenPoints(s), int64(1)
		w.row(t.first + s)
		for most := min(t.strips-s, w.size[1]-w.at[1], p.callRows(n)); rows < most && t.evenPoints(s+rows) == n; {
			rows++
		}
		t.foldInto(w, list, s)
		w.run(n, rows)
		for r := t.first + s; n < x.reduced && r < t.first+s+rows; r++ {
			same := true
			for k := 0; same && k < len(list); k++ {
				same = stored[k] == 0 || foldsAgain(list[k].op, list[k].size, t.pointAt(stored[k], list[k].size, r, n-1))
			}
			if same {
				t.repeat(ph, r, n)
				continue
			}
			w.row(r)
			t.foldInto(w, list, r-t.first)
			w.run(x.reduced, 1)
		}
		s += rows
	}
	goruntime.KeepAlive(p)
	return true
}

// keepsFolded finds the temporaries that store the folded values of sums. It returns false if a
// value is not stored, or if a phase may overwrite its own input: the phase may have to run again.
func (t *rowTile) keepsFolded(ph *codegen.Phase, list []rowOp, stored *[maxReduces]int) bool {
	for _, st := range ph.Stores {
		reads := func(in ir.Instr) bool { return in.Op == ir.Load && int(uint32(in.Imm)) == st.Operand }
		if st.Operand < t.x.nops || slices.ContainsFunc(ph.Body, reads) {
			return false
		}
	}
	for k := range list {
		if list[k].op != foldSum {
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
func (t *rowTile) pointAt(operand int, size, row, point int64) unsafe.Pointer {
	o := &t.ops[operand]
	at := o.offset + point
	for d := t.x.kept - 1; d >= 0; d-- {
		at += row % t.x.args.dims[d] * o.stride[d]
		row /= t.x.args.dims[d]
	}
	return unsafe.Add(o.base, at*size)
}

// someOf evaluates points [from, to) of a strip and passes them to the row ops.
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

// foldsAgain reports that folding a value, a float of size bytes, once more changes nothing.
func foldsAgain(op foldOp, size int64, value unsafe.Pointer) bool {
	if op != foldSum {
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
func (t *rowTile) repeat(ph *codegen.Phase, row, n int64) {
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
