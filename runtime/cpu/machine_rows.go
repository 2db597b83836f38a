package cpu

import (
	goruntime "runtime"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// foldRows maps a foldOp to its row op.
var foldRows = map[foldOp]ir.Op{foldSum: ir.Sum, foldProd: ir.Prod, foldMax: ir.Max, foldMin: ir.Min}

// compileFolding makes code that folds the values that it computes, a row or a block at a time: no
// value of a fold goes through memory. It returns nil if that is not possible.
func (p *machinePhase) compileFolding(list []rowOp, columns bool) *machineCode {
	if len(list) == 0 || len(p.staged)+len(p.boxed) > 0 {
		return nil
	}
	v := p.v
	v.Columns = columns
	for k := range list {
		o := &list[k]
		row, known := foldRows[o.op]
		if !known || !o.folds() || o.dt.Size() < 4 || o.dt.Storage() || p.kernel.Body[p.kernel.Reduces[k].Value].DT != o.dt {
			return nil
		}
		f, err := native.Fold{}, error(nil)
		if join := row.Info().Combine; columns { // the lanes of columns are joined without images
			f.Join, err = joinKernel(join, o.dt, p.kernel.Denormals)
		} else {
			f, err = nativeFold(join, o.dt, p.kernel.Denormals)
		}
		if err != nil {
			lesserRefused.Add(1)
			return nil
		}
		if f.Start = ir.FoldStart(row, o.dt); f.Image != nil {
			f.Start = imageOf(f.Start, o.dt)
		}
		v.Folds = append(v.Folds, f)
	}
	f, err := native.Compile(p.kernel, v, p.isa, false)
	if err != nil {
		lesserRefused.Add(1)
		return nil
	}
	return lesserCode(f, "folding kernel")
}

// imageOf maps a float that is no NaN to an integer with the same order: see imageText.
func imageOf(bits uint64, dt ir.DType) uint64 {
	if dt == ir.Float64 {
		return bits ^ uint64(int64(bits)>>63)&(1<<63-1)
	}
	x := uint32(bits)
	return uint64(x ^ uint32(int32(x)>>31)&(1<<31-1))
}

// foldWalk runs a phase of rows by folding code.
type foldWalk struct {
	machineWalk
	code *machineCode
	own  merged
}

// forget drops the pointers that would keep memory alive.
func (w *foldWalk) forget() { w.p, w.a, w.code = nil, nil, nil }

// open reports whether the rows of a tile have the layout that the code expects: one run of points
// at a constant step, for all operands.
func (w *foldWalk) open(t *rowTile, p *machinePhase, code *machineCode) bool {
	a := &t.points
	w.machineWalk = machineWalk{p: p, a: a, merged: &w.own}
	w.code = code
	if t.x.cols {
		return w.openColumns()
	}
	kept, inner := t.x.kept, a.rank-1
	for inner > kept && a.dims[inner] == 1 {
		inner--
	}
	if inner < a.rank-1 && !w.fits(inner) {
		return false
	}
	n := a.dims[inner]
	for d := inner - 1; d >= kept; d-- {
		if a.dims[d] == 1 {
			continue
		}
		if !w.goesOn(d, inner, n) {
			return false
		}
		n *= a.dims[d]
	}
	w.dim[0], w.size[0], w.rank = int8(inner), n, 1
	for d := kept - 1; d >= 0; d-- {
		if j := w.rank - 1; j > 0 && (a.dims[d] == 1 || w.goesOn(d, int(w.dim[j]), w.size[j])) {
			w.size[j] *= a.dims[d]
			continue
		}
		w.dim[w.rank], w.size[w.rank] = int8(d), a.dims[d]
		w.rank++
	}
	if w.rank == 1 { // all points are one row
		w.dim[1], w.size[1], w.rank = w.dim[0], 1, 2
	}
	w.ready()
	w.lookAhead()
	return true
}

// openColumns does the same for columns, whose rows must be one run, too.
func (w *foldWalk) openColumns() bool {
	a, last := w.a, w.a.rank-1
	w.dim[0], w.size[0], w.dim[1], w.size[1], w.rank = int8(last), a.dims[last], int8(max(last-1, 0)), 1, 2
	for d := last - 1; d >= 0; d-- {
		switch {
		case a.dims[d] == 1:
		case w.size[1] == 1:
			w.dim[1], w.size[1] = int8(d), a.dims[d]
		case w.goesOn(d, int(w.dim[1]), w.size[1]):
			w.size[1] *= a.dims[d]
		default:
			return false
		}
	}
	w.ready()
	return w.size[0] > 1 // for a single point no access class holds
}

func (w *foldWalk) ready() {
	scratch := unsafe.Pointer(unsafe.SliceData(w.a.scratch))
	w.frame = unsafe.Add(scratch, -uintptr(scratch)&63)
	w.write(w.code)
}

// row moves to a row.
func (w *foldWalk) row(r int64) {
	w.at[0] = 0
	for j := 1; j < w.rank; j++ {
		if w.at[j] = r; j < w.rank-1 {
			w.at[j], r = r%w.size[j], r/w.size[j]
		}
	}
}

// result sets the address of Reduce k's results, which are step bytes apart.
func (w *foldWalk) result(k int, p unsafe.Pointer, step int64) {
	o := native.FrameArgs + (len(w.p.kernel.Operands)+k)*native.OperandBytes
	*word(w.frame, o+native.Address), *word(w.frame, o+native.RowStep) = int64(uintptr(p)), step
}

func (w *foldWalk) run(points, rows int64) {
	*word(w.frame, native.FramePoints), *word(w.frame, native.FrameRows) = points, rows
	for _, i := range w.p.direct {
		*word(w.frame, native.FrameArgs+int(i)*native.OperandBytes+native.Address) = w.address(int(i))
	}
	if t := w.a.tape; t != nil {
		t.phase(&w.machineWalk, w.code)
	}
	machine.Call(w.code.entry, w.frame, w.p.mxcsr)
}

// foldRows runs blocks [from, to) of all strips of a phase by folding code; it returns false if
// there is none for it.
func (t *rowTile) foldRows(list []rowOp, e evaluator, from, to int64) bool {
	x := t.x
	p, ok := e.(*machinePhase)
	if !ok || p.folds == nil {
		return false
	}
	w := t.folding
	defer w.forget()
	lanes, most := int64(p.folds.f.Lanes), p.foldPoints()
	if !x.cols && most < min(x.reduced, ir.FoldBlock) || !w.open(t, p, p.folds) {
		return false
	}
	fault := word(w.frame, native.FrameFault)
	*fault = 0
	switch {
	case x.cols:
		w.readyColumns(list)
		t.foldColumns(w, list, from, to, most/lanes*lanes)
	case t.own && x.blocks == 1:
		t.foldWhole(w, list)
	default:
		for s := range t.strips {
			t.foldBlocks(w, list, s, from, to)
		}
	}
	if *fault != 0 {
		w.a.fault.note(int(*word(w.frame, native.FrameFault+8)), *word(w.frame, native.FrameFault+16))
	}
	goruntime.KeepAlive(p)
	return true
}

// foldWhole folds rows of at most a block, as many in one call as allowed.
func (t *rowTile) foldWhole(w *foldWalk, list []rowOp) {
	x := t.x
	for s := int64(0); s < t.strips; {
		w.row(t.first + s)
		rows := max(min(t.strips-s, w.size[1]-w.at[1], w.p.callRows(x.reduced)), 1)
		t.foldInto(w, list, s)
		w.run(x.reduced, rows)
		s += rows
	}
}

// foldInto directs the folds of the rows from a strip on to the final places of the results.
func (t *rowTile) foldInto(w *foldWalk, list []rowOp, strip int64) {
	x := t.x
	for k := range list {
		o := &list[k]
		step := o.size
		if !x.plan.Temps[o.temp-x.nops].Row {
			step *= x.reduced
		}
		w.result(k, t.resultAt(o, strip, 0), step)
	}
}

// foldPoints returns the most points of a row that such a call may take.
func (p *machinePhase) foldPoints() int64 {
	return min(callWork/int64(max(p.folds.f.Work, 1))*int64(p.folds.f.Lanes), p.chunk)
}

// foldBlocks folds the blocks of a strip one by one.
func (t *rowTile) foldBlocks(w *foldWalk, list []rowOp, strip, from, to int64) {
	w.row(t.first + strip)
	for b := from; b < to; b++ {
		w.at[0] = b * ir.FoldBlock
		for k := range list {
			w.result(k, t.acc[k], 0)
		}
		w.run(min(t.x.reduced-w.at[0], ir.FoldBlock), 1)
		for k := range list {
			t.joinBlock(list, k, strip, b, t.acc[k])
		}
	}
}
