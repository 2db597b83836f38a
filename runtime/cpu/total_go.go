package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// goTotal is a fold of all points of a launch on its way: batches come in order.
type goTotal struct {
	op    ir.Op
	dt    *rowDType
	size  int64
	open  []byte // elements of the block at hand
	sum   folded
	some  bool // sum holds blocks
	empty uint64
}

// totalAt is the element that a total's access names.
func totalAt(a *runtime.Access, l *runtime.Launch) int64 {
	var point [runtime.MaxRank]int64
	return codegen.Position(a, point[:l.Rank])
}

// total is the fold that goes to an operand.
func (w *rowWalk) total(red *codegen.Reduce, value ir.DType, empty uint64) *goTotal {
	if w.totals == nil {
		w.totals = map[int]*goTotal{}
	}
	t := w.totals[red.Operand]
	if t == nil {
		t = &goTotal{op: red.Op, dt: w.r.p.rowsOf(value), size: int64(value.Size()), empty: empty}
		w.totals[red.Operand] = t
	}
	return t
}

// add takes the next n elements.
func (t *goTotal) add(values []byte, n int64) {
	values = values[:n*t.size]
	for len(values) > 0 {
		m := min(len(values), int(ir.FoldBlock*t.size)-len(t.open))
		t.open, values = append(t.open, values[:m]...), values[m:]
		if int64(len(t.open)) == ir.FoldBlock*t.size {
			t.close()
		}
	}
}

// close folds the block at hand.
func (t *goTotal) close() {
	part := t.dt.block(t.op, unsafe.Pointer(unsafe.SliceData(t.open)), 0, int64(len(t.open))/t.size, 0)
	if t.some {
		part = t.dt.join(t.op, t.sum, part)
	}
	t.sum, t.some, t.open = part, true, t.open[:0]
}

func (t *goTotal) result() uint64 {
	if len(t.open) > 0 {
		t.close()
	}
	if !t.some {
		return t.empty
	}
	return t.dt.result(t.op, t.sum)
}
