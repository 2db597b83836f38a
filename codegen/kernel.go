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
