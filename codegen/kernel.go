// Package codegen defines Kernel IR: what one device launch computes. Fusion
// writes kernels; printers (codegen/cgo, codegen/shader) and the interpreters
// read them. It knows ir and nothing of streams, plans or devices.
//
// # Model
//
// A kernel runs its Body once for every point of an iteration domain. The
// domain's rank and sizes are not part of the kernel: they arrive at launch,
// with one Access per operand that says where a point's element is found. So
// a kernel serves every size, broadcast pattern and layout; a device may build
// variants of it for classes of accesses ([AccessClass]).
//
// The domain is split: the first Kept dims (in the launch) are kept, the rest
// are reduced. A row is the points of the reduced dims under one point of the
// kept ones, in row-major order. Row ops of the table (reductions, scans,
// sorts, contractions) are instructions of Body like any other: they see a
// whole row of their operand, in the combine order of docs/numerics/order.md. A
// kernel without row ops has no reduced dims. Imm of a sort is 1 where it is
// descending.
//
// A scatter is the only row op of its kernel, and what it gives is stored and
// nothing else. Its operand and the output are row operands, whose axis that the
// indices name is the Access's IndexStride and IndexSize; the domain is that of
// the indices and what is scattered. The output begins as a copy of the operand,
// or is the operand, where both have one buffer.
//
// A kernel with rows may fold its points as a whole, too: its Reduces are totals,
// each of a reduction, over all points of the launch in row-major order, kept dims
// first. What they give is in an output that stands still, and nowhere else.
//
// Values have levels ([Kernel.Levels]): uniform ones are the same everywhere,
// row values have one value per row, point values one per point.
//
// Printers and block interpreters know nothing of rows. [Phases] takes a
// kernel apart into elementwise kernels, the phases, with temporaries between
// them; what drives the phases does the folding.
//
// Engine part: no compatibility promise; use package millrace.
package codegen

import "github.com/millrace-go/millrace/ir"

// OperandKind says what a kernel does with an operand.
type OperandKind uint8

const (
	Input  OperandKind = iota // read by ir.Load and ir.LoadAt
	Output                    // written by a Store or a Fold
	Index                     // no memory: ir.IndexLo/IndexHi give the position its Access computes
)

// Operand is one access of the kernel. Two operands may share a buffer: an
// input read through two views, an output that overwrites an input whose
// Access is the same.
type Operand struct {
	Kind OperandKind
	DT   ir.DType // Invalid for Index
	// Row operands have no part in the reduced dims: their Access has stride 0
	// there. What a row input holds is a row value, and a row output takes one.
	Row bool
}

// Store writes a value of Body through an output operand at every point, or
// once per row where the operand is a row operand. Where the output's Access
// has stride 0 along a kept dim of size above 1, only the points at position 0
// of that dim store.
type Store struct {
	Operand int
	Value   ir.Ref
}

// Reduce hands a value to whoever drives a phase: the row op Op takes it, and
// leaves its result in the temporary Operand. That of a kernel, and of a phase
// whose Operand is one of the kernel's, is a total.
type Reduce struct {
	Op         ir.Op
	Value      ir.Ref
	Operand    int
	Descending bool // sorts
}

// Kernel is one launch worth of work, or one phase of it. Body holds ops of
// the table as well as primitives; Lower turns all but row ops into primitives.
type Kernel struct {
	Operands []Operand
	Scalars  []ir.DType // run-time arguments, read by ir.Scalar
	Body     []ir.Instr
	Stores   []Store
	Reduces  []Reduce // of a phase; totals
	// Denormals are treated so by the primitives of Body and of what its ops
	// expand to, and by row ops. What an op of a program needs beyond that are
	// instructions of Body: see [Flushed].
	Denormals ir.Denormals
}
