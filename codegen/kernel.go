// Package codegen defines Kernel IR: what one device launch computes. Fusion
// writes kernels; printers (codegen/cgo, codegen/wgsl) and the interpreters
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
// A reduction kernel's domain is split: the first Kept dims (in the launch)
// are kept, the rest are reduced in row-major order, under the combine order
// of docs/numerics.md. Body then runs once per point, and Reduce folds values
// over the reduced dims.
//
// Engine part: no compatibility promise; use package millrace.
package codegen

import "github.com/millrace-go/millrace/ir"

// OperandKind says what a kernel does with an operand.
type OperandKind uint8

const (
	Input  OperandKind = iota // read by ir.Load
	Output                    // written by a Store or a Reduce
	Index                     // no memory: ir.IndexLo/IndexHi give the position its Access computes
)

// Operand is one access of the kernel. Two operands may share a buffer: an
// input read through two views, an output that overwrites an input whose
// Access is the same.
type Operand struct {
	Kind OperandKind
	DT   ir.DType // Invalid for Index
}

// Store writes a value of Body through an output operand at every point. Where
// the output's Access has stride 0 along a dim of size above 1, only the
// points at position 0 of that dim store.
type Store struct {
	Operand int
	Value   ir.Ref
}

// Reduce folds a value over the reduced dims and writes it through an output
// whose Access has stride 0 along them.
type Reduce struct {
	Op      ir.Op // ir.Sum, ir.Max
	Value   ir.Ref
	Operand int
}

// Kernel is one launch worth of work. Body holds ops of the table as well as
// primitives; Lower turns it into primitives only.
type Kernel struct {
	Operands []Operand
	Scalars  []ir.DType // run-time arguments, read by ir.Scalar
	Body     []ir.Instr
	Stores   []Store
	Reduces  []Reduce // all over the same reduced dims; empty for elementwise
}
