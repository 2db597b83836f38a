package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Where the elements of a side are. Side x is indexed by rows i in [0, m), side y by
// columns i in [0, n), both by p in [0, k).
const (
	// In memory: element (i, p) of a batch is i*stride + p*kstride elements behind its first.
	sideMem = iota
	// From fill, which writes runs along k: element (i, p) goes to dst[(i-i0)*ld + p-p0].
	sideFillK
	// From fill, which writes runs along i: element (i, p) goes to dst[(p-p0)*ld + i-i0].
	sideFillI
)

// contraction is c[b,i,j] = sum over p of x[b,i,p]*y[b,p,j], in the order of
// docs/numerics/order.md: for each output k is cut into blocks of contractK; a block is a chain
// c = fma(x, y, c) in ascending p that begins at +0, and the blocks' results are added in
// order to a total that begins at +0. Integers multiply and add, wrapping. How m, n and the
// batch are cut into tiles and shared out does not enter: an output has the same bits
// whatever surrounds it.
type contraction struct {
	m, n, k int64
	dt      ir.DType
	dims    []int64 // of the batch
	threads int
	soft    bool // denormals are flushed
	x, y    side
	// drain takes a finished tile, once for every output, on the thread that computed it: it
	// is in its cache, and may be written to. nil: results go to out.
	drain    func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64)
	out      unsafe.Pointer // where drain is nil
	outRow   int64
	outBatch []int64

	wide, high int64 // powers of two by which tiles are wider or higher than chosen
	work       int64 // what a fill or drain of an element costs, in multiplications
	stays      *packedY
	same       bool // y is what it was in the run before with stays

	// Element (i, j) of a mask, for contractions without batches, is at mask + i*maskRow + j:
	// where it says so, nobody sees whether the result is what it is or +0. With maskSmall
	// that holds of results that are small (see contractSmall), else of any. nil where all results
	// matter; Go's own loops do not look at it. tails[i] is lowered to the column from which
	// on all results of row i are such zeros, whose number is added to hidden.
	mask      unsafe.Pointer
	maskRow   int64
	maskKind  maskKind
	maskSmall bool
	tails     unsafe.Pointer
	hidden    unsafe.Pointer
	spans     maskSpans // of the mask; nil where it may change from run to run

	tape *tape // takes down what is done; nil as a rule
	to   int   // the operand that out is
}

// side gives the elements of one. fill computes elements [i0, i1) by [p0, p1) of a batch,
// at most maxFill of them, p0 being a multiple of fillStep: on any thread, in any order, some
// of them more than once. panels does so into panels of so many columns: element (i, p) goes
// to dst[(i-i0)/width*panel + (p-p0)*width + (i-i0)%width], and zeros where there are no more
// columns.
type side struct {
	kind            int
	base            unsafe.Pointer
	stride, kstride int64
	batch           []int64
	operand         int // of sideMem
	fill            func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64)
	panels          func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, width, panel int64) // of sideFillI; nil: by fill
}

func (c *contraction) batches() int64 {
	n := int64(1)
	for _, d := range c.dims {
		n *= d
	}
	return n
}

// offset is where a batch begins, given the strides of its dims.
func (c *contraction) offset(stride []int64, batch int64) int64 {
	at := int64(0)
	for d := len(c.dims) - 1; d >= 0; d-- {
		at += batch % c.dims[d] * stride[d]
		batch /= c.dims[d]
	}
	return at
}
