package fold

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Op is an op that values are folded or scanned by. A scan uses the Op of the matching
// fold.
type Op int

// The ops. Any and All of booleans are Max and Min.
const (
	Sum Op = iota
	Prod
	Max
	Min
	ArgMax
	ArgMin
	numFolds
)

// RowOps maps an Op whose accumulators are plain numbers to its row op.
var RowOps = map[Op]ir.Op{Sum: ir.Sum, Prod: ir.Prod, Max: ir.Max, Min: ir.Min}

// Plain reports that the accumulators of an op are plain numbers.
func (op Op) Plain() bool { return op < ArgMax }

// OpOf returns the Op of a row op; sorts have none.
func OpOf(op ir.Op) Op { return ops[op] }

var ops = map[ir.Op]Op{
	ir.Sum: Sum, ir.Prod: Prod, ir.Max: Max, ir.Min: Min, ir.Any: Max, ir.All: Min,
	ir.ArgMax: ArgMax, ir.ArgMin: ArgMin,
	ir.CumSum: Sum, ir.CumProd: Prod, ir.CumMax: Max, ir.CumMin: Min,
}

// SpareLanes is the extra room, in lanes, that Folder.Columns uses.
const SpareLanes = 8

// Folder folds and scans by one op on one compute dtype, in the order of docs/numerics/order.md:
// lanes by index modulo ir.FoldLanes, blocks of ir.FoldBlock, one fixed fold of the lanes, blocks
// combined in order. Columns are rows that are stored side by side: element i of column j is
// values[i*ld + j]. An accumulator has lanes, of n columns each.
type Folder struct {
	Size  int64 // bytes of an accumulator for one column
	Lanes int64 // accumulators per column; 1 for folds whose accumulators are not plain numbers
	// Start initializes the lanes of a single column. The lanes of several columns begin with
	// their first element instead.
	Start func(acc unsafe.Pointer)
	// Add takes elements r, r+1, … r+m-1 of n columns, all in one block.
	Add func(acc, values unsafe.Pointer, r, m, n, ld int64)
	// Finish does the fixed fold after all elements of a block were added. The first n
	// accumulators are the result.
	Finish func(acc unsafe.Pointer, elements, n int64)
	// Columns does Add and Finish of a block of m rows in memory, ld elements apart, and writes to
	// out. acc has room for the lanes and some rows more. If Columns is nil or returns false, the
	// caller uses Add and Finish.
	Columns func(out, acc, values unsafe.Pointer, m, n, ld int64) bool
	// Rows folds n rows of m elements each, step bytes apart, to results outStep bytes apart. m is
	// a multiple of the lanes and at most a block. If Rows is nil or returns false, the caller
	// uses Add.
	Rows func(out unsafe.Pointer, outStep int64, values unsafe.Pointer, step, m, n int64) bool
	// Combine adds the next block to the total.
	Combine func(total, block unsafe.Pointer, n int64)
	// Result writes the results of n columns as elements of size bytes.
	Result func(out unsafe.Pointer, size int64, total unsafe.Pointer, n int64)
	// Scan scans elements r to r+m-1 of n dense columns, in blocks of ir.ScanBlock. run and offset
	// keep one value per column between calls. scan is nil for folds whose accumulators are not
	// plain numbers.
	Scan func(out, values, run, offset unsafe.Pointer, r, m, n int64)
}

// DType describes a dtype in rows: the dtype that computes it, and the conversions, which are
// nil for a dtype that computes itself.
type DType struct {
	Size, compute int64
	Widen, Narrow func(to, from unsafe.Pointer, n int64)
	Joins         [ir.NumCombines]Joins
}

// Table holds all folders: Go's, which machine code may replace one by one.
type Table struct {
	folders [numFolds][ir.NumDTypes]Folder // by compute dtype
	DTypes  [ir.NumDTypes]DType
}

// goFolds keep denormals; softFolds serve programs that flush denormals in software.
var goFolds, softFolds = newTable(false), newTable(true)

// ByGo returns the folders in Go.
func ByGo(d ir.Denormals) *Table {
	if d == ir.FlushDenormals {
		return softFolds
	}
	return goFolds
}

// ByMachine returns the folders in machine code, as far as there is any. Go does the rest.
func ByMachine(d ir.Denormals) *Table { return machineFolds[d]() }

// Of returns the folder for values of a dtype.
func (f *Table) Of(op Op, dt ir.DType) *Folder { return &f.folders[op][f.DTypes[dt].compute] }
