package cpu

import (
	"math/bits"
	goruntime "runtime"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
)

// compileFolding makes code that folds the values that it computes, a row or a block at a time: no
// value of a fold goes through memory. It returns nil if that is not possible.
func (p *machinePhase) compileFolding(list []rows.Op, columns bool) *jit.Code {
	if len(list) == 0 || len(p.staged)+len(p.boxed) > 0 {
		return nil
	}
	v := p.v
	v.Columns = columns
	for k := range list {
		o := &list[k]
		if !o.Fold.Plain() || !o.Folds() || o.DT.Size() < 4 || o.DT.Storage() || p.kernel.Body[p.kernel.Reduces[k].Value].DT != o.DT {
			return nil
		}
		f, err := fold.Native(o.Fold, o.DT, p.kernel.Denormals, columns)
		if err != nil {
			jit.Refused.Add(1)
			return nil
		}
		v.Folds = append(v.Folds, f)
	}
	f, err := native.Compile(p.kernel, v, p.isa, false)
	if err != nil {
		jit.Refused.Add(1)
		return nil
	}
	return jit.MapOptional(f, "folding kernel")
}

// foldWalk runs a phase of rows by machine code, folding or not: it is a rows.Code.
type foldWalk struct {
	machineWalk
	own merged
}

// Points returns the most points of a row that a call may take.
func (w *foldWalk) Points(folds bool) int64 {
	p := w.p
	switch {
	case folds && p.folds != nil:
		return min(callWork/int64(max(p.folds.Func.Work, 1))*int64(p.folds.Func.Lanes), p.chunk)
	case folds || len(p.staged)+len(p.boxed) > 0:
		return 0
	}
	return p.chunk
}

// code returns the function that folds, or the one that stores.
func (w *foldWalk) code(folds bool) *jit.Code {
	if folds {
		return w.p.folds
	}
	return &w.p.whole
}

// Open reports whether the rows of a tile have the layout that the code expects, and writes the
// parts of the frame that are the same for all calls.
func (w *foldWalk) Open(kept int, cols, folds bool) bool {
	if cols && !w.mergeColumns() || !cols && !w.mergeRows(kept) {
		return false
	}
	scratch := unsafe.Pointer(unsafe.SliceData(w.a.Scratch))
	w.frame = unsafe.Add(scratch, -uintptr(scratch)&63)
	w.write(w.code(folds))
	if cols {
		w.readyColumns()
	} else {
		w.lookAhead()
	}
	*jit.Word(w.frame, native.FrameFault) = 0
	return true
}

// mergeRows merges dims: the points of a row must be one run at a constant step, for all operands.
func (w *foldWalk) mergeRows(kept int) bool {
	a := w.a
	inner := a.Rank - 1
	for inner > kept && a.Dims[inner] == 1 {
		inner--
	}
	if inner < a.Rank-1 && !w.fits(inner) {
		return false
	}
	n := a.Dims[inner]
	for d := inner - 1; d >= kept; d-- {
		if a.Dims[d] == 1 {
			continue
		}
		if !w.goesOn(d, inner, n) {
			return false
		}
		n *= a.Dims[d]
	}
	w.dim[0], w.size[0], w.rank = int8(inner), n, 1
	for d := kept - 1; d >= 0; d-- {
		if j := w.rank - 1; j > 0 && (a.Dims[d] == 1 || w.goesOn(d, int(w.dim[j]), w.size[j])) {
			w.size[j] *= a.Dims[d]
			continue
		}
		w.dim[w.rank], w.size[w.rank] = int8(d), a.Dims[d]
		w.rank++
	}
	if w.rank == 1 { // all points are one row
		w.dim[1], w.size[1], w.rank = w.dim[0], 1, 2
	}
	return true
}

// mergeColumns does the same for columns, whose rows must be one run, too.
func (w *foldWalk) mergeColumns() bool {
	a, last := w.a, w.a.Rank-1
	w.dim[0], w.size[0], w.dim[1], w.size[1], w.rank = int8(last), a.Dims[last], int8(max(last-1, 0)), 1, 2
	for d := last - 1; d >= 0; d-- {
		switch {
		case a.Dims[d] == 1:
		case w.size[1] == 1:
			w.dim[1], w.size[1] = int8(d), a.Dims[d]
		case w.goesOn(d, int(w.dim[1]), w.size[1]):
			w.size[1] *= a.Dims[d]
		default:
			return false
		}
	}
	return w.size[0] > 1 // for a single point no access class holds
}

// readyColumns writes the parts of the frame for columns.
func (w *foldWalk) readyColumns() {
	for _, i := range w.p.direct {
		*jit.Word(w.frame, native.FrameArgs+int(i)*native.OperandBytes+native.RowStep) *= ir.FoldLanes
	}
	for left := w.p.v.Ahead; left != 0; left &= left - 1 { // prefetch the next row of a call
		o := native.FrameArgs + bits.TrailingZeros64(left)*native.OperandBytes
		*jit.Word(w.frame, o+native.Ahead) = *jit.Word(w.frame, o+native.RowStep)
	}
	for k, r := range w.p.kernel.Reduces {
		o := native.FrameArgs + (len(w.p.kernel.Operands)+k)*native.OperandBytes
		*jit.Word(w.frame, o+native.Step) = int64(w.p.kernel.Body[r.Value].DT.Size())
	}
}

func (w *foldWalk) Move(row, point int64) {
	w.at[0] = point
	for j := 1; j < w.rank; j++ {
		if w.at[j] = row; j < w.rank-1 {
			w.at[j], row = row%w.size[j], row/w.size[j]
		}
	}
}

func (w *foldWalk) Rows(points int64) int64 {
	return max(min(w.size[1]-w.at[1], w.p.callRows(points)), 1)
}

func (w *foldWalk) Result(k int, p unsafe.Pointer, step int64) {
	o := native.FrameArgs + (len(w.p.kernel.Operands)+k)*native.OperandBytes
	*jit.Word(w.frame, o+native.Address), *jit.Word(w.frame, o+native.RowStep) = int64(uintptr(p)), step
}

func (w *foldWalk) Run(points, rows int64, folds bool) {
	code := w.code(folds)
	*jit.Word(w.frame, native.FramePoints), *jit.Word(w.frame, native.FrameRows) = points, rows
	for _, i := range w.p.direct {
		*jit.Word(w.frame, native.FrameArgs+int(i)*native.OperandBytes+native.Address) = w.address(int(i))
	}
	if t := w.a.tape; t != nil {
		t.phase(&w.machineWalk, code)
	}
	code.Call(w.frame, w.p.mxcsr)
}

func (w *foldWalk) Close() {
	if w.frame != nil && *jit.Word(w.frame, native.FrameFault) != 0 {
		w.a.Fault.Note(int(*jit.Word(w.frame, native.FrameFault+8)), *jit.Word(w.frame, native.FrameFault+16))
	}
	goruntime.KeepAlive(w.p)
	w.p, w.a, w.frame = nil, nil, nil
}
