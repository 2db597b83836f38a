package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// The kinds of a side: where its elements come from. Side x is indexed by rows i in [0, m), side y
// by columns i in [0, n), both by p in [0, k).
const (
	// In memory: element (i, p) of a batch is i*stride + p*kstride elements after the batch's
	// first element.
	sideMem = iota
	// From fill, which writes runs along k: element (i, p) goes to dst[(i-i0)*ld + p-p0].
	sideFillK
	// From fill, which writes runs along i: element (i, p) goes to dst[(p-p0)*ld + i-i0].
	sideFillI
)

// contraction computes c[b,i,j] = sum over p of x[b,i,p]*y[b,p,j], in the order of
// docs/numerics/order.md. For each output, k is cut into blocks of contractK. A block is a chain c
// = fma(x, y, c) in ascending p that begins at +0. The results of the blocks are added in order to
// a total that begins at +0. Integers multiply and add with wraparound. How m, n and the batch are
// cut into tiles and distributed does not matter: an output has the same bits in every context.
type contraction struct {
	m, n, k int64
	dt      ir.DType
	dims    []int64 // of the batch
	threads int
	soft    bool // flush denormals
	x, y    side
	// drain receives a finished tile, once for every output, on the thread that computed it. The
	// tile is in that thread's cache, and drain may overwrite it. If drain is nil, results go to
	// out.
	drain    func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64)
	out      unsafe.Pointer // used if drain is nil
	outRow   int64
	outBatch []int64

	wide, high int64 // exponents of two: factors by which tiles are wider or higher than the default
	work       int64 // cost of a fill or drain of one element, in multiplications
	stays      *packedY
	same       bool // y is the same as in the previous run with stays

	// mask is the mask of a contraction without batches; its element (i, j) is at mask + i*maskRow
	// + j. A set element says that the result may be replaced by +0 without effect. With maskSmall
	// that holds only for small results (see contractSmall), else for all. mask is nil if all
	// results matter; Go's own loops ignore it. tails[i] is lowered to the column from which on
	// all results of row i are such zeros. The number of these zeros is added to hidden.
	mask      unsafe.Pointer
	maskRow   int64
	maskKind  maskKind
	maskSmall bool
	tails     unsafe.Pointer
	hidden    unsafe.Pointer
	spans     maskSpans // of the mask; nil if the mask may change from run to run

	tape *tape // records the work; usually nil
	to   int   // the operand that out belongs to
}

// side provides the elements of x or y. fill computes elements [i0, i1) by [p0, p1) of a batch, at
// most maxFill of them; p0 is a multiple of fillStep. It may be called on any thread, in any
// order, and more than once for an element. panels does the same into panels of width columns:
// element (i, p) goes to dst[(i-i0)/width*panel + (p-p0)*width + (i-i0)%width], and missing
// columns of the last panel are zeros.
type side struct {
	kind            int
	base            unsafe.Pointer
	stride, kstride int64
	batch           []int64
	operand         int // of sideMem
	fill            func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64)
	panels          func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, width, panel int64) // for sideFillI; nil: use fill
}

func (c *contraction) batches() int64 {
	n := int64(1)
	for _, d := range c.dims {
		n *= d
	}
	return n
}

// offset returns the first element of a batch, given the strides of the batch's dims.
func (c *contraction) offset(stride []int64, batch int64) int64 {
	at := int64(0)
	for d := len(c.dims) - 1; d >= 0; d-- {
		at += batch % c.dims[d] * stride[d]
		batch /= c.dims[d]
	}
	return at
}
