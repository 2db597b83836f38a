package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// foldOp is what values are folded or scanned by. A scan is that of a fold's op.
type foldOp int

const (
	foldSum foldOp = iota
	foldProd
	foldMax
	foldMin
	foldArgMax
	foldArgMin
	numFolds
)

// foldOps are those of row ops; sorts have none.
var foldOps = map[ir.Op]foldOp{
	ir.Sum: foldSum, ir.Prod: foldProd, ir.Max: foldMax, ir.Min: foldMin, ir.Any: foldMax, ir.All: foldMin,
	ir.ArgMax: foldArgMax, ir.ArgMin: foldArgMin,
	ir.CumSum: foldSum, ir.CumProd: foldProd, ir.CumMax: foldMax, ir.CumMin: foldMin,
}

// folder folds and scans by one op on one dtype that computes, in the order of
// docs/numerics/order.md: lanes by index modulo ir.FoldLanes, blocks of ir.FoldBlock, one fixed
// fold, blocks combined in order. Columns are rows that lie side by side: element i of
// column j is values[i*ld + j]. Accumulators are lanes of n columns each.
type folder struct {
	size  int64 // bytes of an accumulator of one column
	lanes int64 // accumulators of a column; one where they are no numbers
	// start makes the lanes of one column ready. Those of several begin with their first
	// element.
	start func(acc unsafe.Pointer)
	// add takes elements r, r+1, … r+m-1 of n columns, all of one block.
	add func(acc, values unsafe.Pointer, r, m, n, ld int64)
	// finish is the fixed fold, once so many elements of a block were added: n
	// accumulators are left in front.
	finish func(acc unsafe.Pointer, elements, n int64)
	// columns is add and finish at once, of a block that lies in memory: m rows, ld elements
	// apart, to out. acc is room for the lanes and some rows more. nil, or false, where those
	// have to do it.
	columns func(out, acc, values unsafe.Pointer, m, n, ld int64) bool
	// rows folds n rows of m elements, a multiple of the lanes and a block at most, step bytes
	// apart, to results outStep bytes apart. nil, or false, where add has to.
	rows func(out unsafe.Pointer, outStep int64, values unsafe.Pointer, step, m, n int64) bool
	// combine takes the next block into the total.
	combine func(total, block unsafe.Pointer, n int64)
	// result has the results of n columns as elements of so many bytes.
	result func(out unsafe.Pointer, size int64, total unsafe.Pointer, n int64)
	// scan scans elements r to r+m-1 of n columns that lie densely, in blocks of
	// ir.ScanBlock. run and offset hold a value per column between calls. nil where
	// accumulators are no numbers.
	scan func(out, values, run, offset unsafe.Pointer, r, m, n int64)
}

// rowDType is a dtype in rows: what computes it and how it gets there and back, nil where
// it computes itself.
type rowDType struct {
	size, compute int64
	widen, narrow func(to, from unsafe.Pointer, n int64)
	// key is an element's in the order of sorts.
	key   func(values unsafe.Pointer, i int64, descending bool) uint64
	joins [ir.NumCombines]scatterJoins
}

// foldTable is all of them: Go's, until machine code takes a place.
type foldTable struct {
	fold  [numFolds][ir.NumDTypes]folder // by the dtype that computes
	dtype [ir.NumDTypes]rowDType
}

// goFolds compute as ever; softFolds are those of programs that flush denormals in
// software.
var goFolds, softFolds = newFolds(false), newFolds(true)

// folds has the program's.
func (p *program) folds() *foldTable {
	flush := p.kernel.Denormals == ir.FlushDenormals
	switch {
	case p.dev.target && (!flush || machineFlushes()):
		return machineFolds[p.kernel.Denormals]()
	case p.soft:
		return softFolds
	}
	return goFolds
}

// of is the folder of values of a dtype.
func (f *foldTable) of(op foldOp, dt ir.DType) *folder { return &f.fold[op][f.dtype[dt].compute] }
