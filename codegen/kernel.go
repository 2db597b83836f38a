// Package codegen defines Kernel IR: the computation of one device launch. Fusion writes kernels;
// machine code (codegen/native), printers (codegen/cgo, codegen/shader) and the interpreters read
// them. It knows ir and nothing of streams, plans or devices.
//
// # Model
//
// A kernel runs its Body once for every point of an iteration domain. The domain's rank and sizes
// are not part of the kernel. They come with a launch, together with one Access per operand, which
// says where a point's element is. So a kernel serves every size, broadcast pattern and layout; a
// device may build variants of it for classes of accesses ([AccessClass]).
//
// The domain is split: the first Kept dims of the launch are kept, the others are reduced. A row is
// the points of the reduced dims under one point of the kept ones, in row-major order. Row ops of
// the table (reductions, scans, sorts, contractions) are instructions of Body like any other. They
// use a whole row of their operand, in the combine order of docs/numerics/order.md. A kernel
// without row ops has no reduced dims. Imm of a sort is 1 if it is descending.
//
// A scatter is the only row op of its kernel, and its result is the only thing stored. Its operand
// and the output are row operands. The axis that the indices name is given by IndexStride and
// IndexSize of their Access. The domain is that of the indices and of the scattered values. The
// output begins as a copy of the operand; if both have one buffer, it is the operand.
//
// A kernel with rows may also fold all of its points: its Reduces are totals, each of a reduction,
// over all points of the launch in row-major order, kept dims first. The result of a total is
// stored in an output with stride 0, and nowhere else.
//
// Values have levels ([Kernel.Levels]): uniform values are the same everywhere, row values exist
// once per row, point values once per point.
//
// Printers and block interpreters do not know rows. [Phases] splits a kernel into elementwise
// kernels, the phases, with temporaries between them. The code that runs the phases does the
// folding.
//
// Engine part: no compatibility promise; use package millrace.
package codegen

import "github.com/millrace-go/millrace/ir"

// OperandKind says what a kernel does with an operand.
type OperandKind uint8

const (
	Input  OperandKind = iota // read by ir.Load and ir.LoadAt
	Output                    // written by a Store or a Reduce
	Index                     // no memory: ir.IndexLo/IndexHi give the position its Access computes
)

// Operand is one access of the kernel. Two operands may share a buffer: an input read through two
// views, or an output that overwrites an input with the same Access.
type Operand struct {
	Kind OperandKind
	DT   ir.DType // Invalid for Index
	// Row operands do not vary along the reduced dims: their Access has stride 0 there. Elements of
	// a row input are row values, and a row output takes a row value.
	Row bool
}

// Store writes a value of Body through an output operand at every point, or once per row for a row
// operand. If the output's Access has stride 0 along a kept dim of size above 1, only the points at
// position 0 of that dim store.
type Store struct {
	Operand int
	Value   ir.Ref
}

// Reduce hands a value of a phase to the code that runs the phase: the row op Op takes the value,
// and its result is in the temporary Operand. A Reduce of a kernel is a total, and so is one of a
// phase whose Operand is an operand of the kernel.
type Reduce struct {
	Op         ir.Op
	Value      ir.Ref
	Operand    int
	Descending bool // sorts
}

// Kernel is the work of one launch, or one phase of it. Body holds ops of the table as well as
// primitives; Lower replaces all ops but row ops by primitives.
type Kernel struct {
	Operands []Operand
	Scalars  []ir.DType // run-time arguments, read by ir.Scalar
	Body     []ir.Instr
	Stores   []Store
	Reduces  []Reduce // of a phase: row ops; else totals
	// Denormals says how denormals are treated by the primitives of Body, by those to which its ops
	// expand, and by row ops. Further flushes that a program's op needs are instructions of Body:
	// see [Flushed].
	Denormals ir.Denormals
}
