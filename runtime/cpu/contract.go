package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// How a side of a contraction gives its elements; contract.h explains them.
const (
	sideMem = iota
	sideFillK
	sideFillI
)

// contraction is mr_contract in Go: c[b,i,j] = sum over p of x[b,i,p]*y[b,p,j],
// in the order of docs/numerics.md.
type contraction struct {
	m, n, k  int64
	dt       ir.DType
	dims     []int64 // of the batch
	threads  int
	soft     bool // denormals are flushed in software
	x, y     side
	drain    func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64)
	out      unsafe.Pointer // where drain is nil
	outRow   int64
	outBatch []int64

	wide, high int64 // powers of two by which tiles are wider or higher than chosen
	work       int64 // what a fill or drain of an element costs, in multiplications
	stays      *packedY
	same       bool // y is what it was in the run before with stays

	mask      unsafe.Pointer // of mr_contract; Go's own loops do not look at it
	maskRow   int64
	maskKind  maskKind
	maskSmall bool
	tails     unsafe.Pointer
	hidden    unsafe.Pointer
	spans     maskSpans // of the mask; nil where it may change from run to run

	tape *tape // takes down what is done; nil as a rule
	to   int   // the operand that out is
}

// side is mr_side in Go.
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
