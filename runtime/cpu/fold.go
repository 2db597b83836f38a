package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// foldOp is an op that values are folded or scanned by. A scan uses the foldOp of the matching
// fold.
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

// foldOps maps row ops to foldOps; sorts have none.
var foldOps = map[ir.Op]foldOp{
	ir.Sum: foldSum, ir.Prod: foldProd, ir.Max: foldMax, ir.Min: foldMin, ir.Any: foldMax, ir.All: foldMin,
	ir.ArgMax: foldArgMax, ir.ArgMin: foldArgMin,
	ir.CumSum: foldSum, ir.CumProd: foldProd, ir.CumMax: foldMax, ir.CumMin: foldMin,
}

// folder folds and scans by one op on one compute dtype, in the order of docs/numerics/order.md:
// lanes by index modulo ir.FoldLanes, blocks of ir.FoldBlock, one fixed fold of the lanes, blocks
// combined in order. Columns are rows that are stored side by side: element i of column j is
// values[i*ld + j]. An accumulator has lanes, of n columns each.
type folder struct {
	size  int64 // bytes of an accumulator for one column
	lanes int64 // accumulators per column; 1 for folds whose accumulators are not plain numbers
	// start initializes the lanes of a single column. The lanes of several columns begin with
	// their first element instead.
	start func(acc unsafe.Pointer)
	// add takes elements r, r+1, … r+m-1 of n columns, all in one block.
	add func(acc, values unsafe.Pointer, r, m, n, ld int64)
	// finish does the fixed fold after all elements of a block were added. The first n
	// accumulators are the result.
	finish func(acc unsafe.Pointer, elements, n int64)
	// columns does add and finish of a block of m rows in memory, ld elements apart, and writes to
	// out. acc has room for the lanes and some rows more. If columns is nil or returns false, the
	// caller uses add and finish.
	columns func(out, acc, values unsafe.Pointer, m, n, ld int64) bool
	// rows folds n rows of m elements each, step bytes apart, to results outStep bytes apart. m is
	// a multiple of the lanes and at most a block. If rows is nil or returns false, the caller
	// uses add.
	rows func(out unsafe.Pointer, outStep int64, values unsafe.Pointer, step, m, n int64) bool
	// combine adds the next block to the total.
	combine func(total, block unsafe.Pointer, n int64)
	// result writes the results of n columns as elements of size bytes.
	result func(out unsafe.Pointer, size int64, total unsafe.Pointer, n int64)
	// scan scans elements r to r+m-1 of n dense columns, in blocks of ir.ScanBlock. run and offset
	// keep one value per column between calls. scan is nil for folds whose accumulators are not
	// plain numbers.
	scan func(out, values, run, offset unsafe.Pointer, r, m, n int64)
}

// rowDType describes a dtype in rows: the dtype that computes it, and the conversions, which are
// nil for a dtype that computes itself.
type rowDType struct {
	size, compute int64
	widen, narrow func(to, from unsafe.Pointer, n int64)
	// key returns element i's key in the order of sorts.
	key   func(values unsafe.Pointer, i int64, descending bool) uint64
	joins [ir.NumCombines]scatterJoins
}

// foldTable holds all folders: Go's, which machine code may replace one by one.
type foldTable struct {
	fold  [numFolds][ir.NumDTypes]folder // by compute dtype
	dtype [ir.NumDTypes]rowDType
}

// goFolds keep denormals; softFolds serve programs that flush denormals in software.
var goFolds, softFolds = newFolds(false), newFolds(true)

// folds returns the table for the program.
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

// of returns the folder for values of a dtype.
func (f *foldTable) of(op foldOp, dt ir.DType) *folder { return &f.fold[op][f.dtype[dt].compute] }
