package contract

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/replay"
)

// Contraction computes c[b,i,j] = sum over p of x[b,i,p]*y[b,p,j], in the order of
// docs/numerics/order.md. For each output, k is cut into blocks of blockK. A block is a chain c =
// fma(x, y, c) in ascending p that begins at +0. The results of the blocks are added in order to a
// total that begins at +0. Integers multiply and add with wraparound. How m, n and the batch are
// cut into tiles and distributed does not matter: an output has the same bits in every context.
type Contraction struct {
	M, N, K int64
	DT      ir.DType
	Dims    []int64 // of the batch
	Threads int     // the most threads that it may use; 0: all of the engine
	Soft    bool    // flush denormals
	X, Y    Side
	Out     Results

	Wide, High int64 // exponents of two: factors by which tiles are wider or higher than the default
	Work       int64 // cost of a fill or drain of one element, in multiplications
	Keep       *Packed
	Same       bool // Y is the same as in the previous run with Keep
	Mask       Mask

	Tape *replay.Tape // records the work; usually nil

	code *functions // that copy pieces of walks; nil: Go copies
}

// Kind tells where the elements of a side come from. Side X is indexed by rows i in [0, M), side Y
// by columns i in [0, N), both by p in [0, K).
type Kind int

const (
	// Memory: element (i, p) of a batch is i*Stride + p*KStride elements after the batch's first
	// element.
	Memory Kind = iota
	// AlongK: a walk or a function writes runs along k. Element (i, p) goes to
	// dst[(i-i0)*ld + p-p0].
	AlongK
	// AlongI: a walk or a function writes runs along i. Element (i, p) goes to
	// dst[(p-p0)*ld + i-i0].
	AlongI
)

// Side provides the elements of X or Y.
type Side struct {
	Kind Kind

	// The elements of Kind Memory. The strides of the batch are those of its dims.
	Base            unsafe.Pointer
	Stride, KStride int64
	Batch           []int64
	Operand         int

	// Walk provides the elements of another Kind. Fill does so if Walk is nil: it computes elements
	// [i0, i1) by [p0, p1) of a batch, at most maxFill of them; p0 is a multiple of fillStep. It may
	// be called on any thread, in any order, and more than once for an element.
	Walk *Walk
	Fill func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64)
}

// Results receives each result once. If Walk and Drain are nil, result (i, j) of a batch is written
// i*Row + j elements after the batch's first element.
type Results struct {
	Base    unsafe.Pointer
	Row     int64
	Batch   []int64
	Operand int

	Walk *Walk // writes the results along several dims
	// Drain receives a finished tile, on the thread that computed it. The tile is in that thread's
	// cache, and Drain may overwrite it.
	Drain func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64)
}

// Mask marks results that the caller does not use, for a contraction without batches. Element (i, j)
// of the mask is at At + i*Row + j. A set element says that the result may be replaced by +0
// without effect; with Small that holds only for small results (see smallLimit), else for all. At
// is nil if all results matter. Go's own loops ignore the mask.
type Mask struct {
	At    unsafe.Pointer
	Row   int64
	Kind  MaskKind
	Small bool
	// Tails has an int64 for each row, which is lowered to the column from which on all results of
	// the row are such zeros. The number of these zeros is added to the int64 at Hidden.
	Tails, Hidden unsafe.Pointer
	Spans         Spans // of the mask; nil if the mask may change from run to run
}

// MaskKind is how a mask's element marks a result as hidden.
type MaskKind int

const (
	ByInf   MaskKind = iota // by -inf, in the dtype of the results
	ByTrue                  // by true
	ByFalse                 // by false
)

func (c *Contraction) batches() int64 {
	n := int64(1)
	for _, d := range c.Dims {
		n *= d
	}
	return n
}

// offset returns the first element of a batch, given the strides of the batch's dims.
func (c *Contraction) offset(stride []int64, batch int64) int64 {
	at := int64(0)
	for d := len(c.Dims) - 1; d >= 0; d-- {
		at += batch % c.Dims[d] * stride[d]
		batch /= c.Dims[d]
	}
	return at
}

// fill computes elements of a side that is not of Kind Memory, see Side.Fill.
func (c *Contraction) fill(s *Side, batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
	switch {
	case s.Walk == nil:
		s.Fill(batch, i0, i1, p0, p1, dst, ld)
	case s.Kind == AlongK:
		s.Walk.load(c, &walkOver{batch, i0, i1, p0, p1, dst, ld, p1 - p0, 0})
	default:
		s.Walk.load(c, &walkOver{batch, p0, p1, i0, i1, dst, ld, i1 - i0, 0})
	}
}

// drains reports that results are passed on tile by tile.
func (c *Contraction) drains() bool { return c.Out.Walk != nil || c.Out.Drain != nil }

// drain passes a tile on, see Results.Drain.
func (c *Contraction) drain(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
	if w := c.Out.Walk; w != nil {
		w.store(c, &walkOver{batch, row0, row0 + rows, col0, col0 + cols, tile, ld, cols, 0})
		return
	}
	c.Out.Drain(batch, row0, rows, col0, cols, tile, ld)
}
