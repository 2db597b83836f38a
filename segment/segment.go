package segment

import "github.com/millrace-go/millrace/ir"

// Life says what must become of a tensor when its segment runs.
type Life uint8

const (
	// LifeInput: an operand that has memory already.
	LifeInput Life = iota
	// LifeInputDying: an operand whose handle is released and that nothing
	// else reads: the last kernel that reads it may overwrite its buffer.
	LifeInputDying
	// LifeDead: a result that nobody outside the segment can ask for.
	LifeDead
	// LifeVirtual: a result somebody may ask for; recomputed from its recipe
	// if so. Need not be written.
	LifeVirtual
	// LifeDear: as LifeVirtual, but too dear to be computed again lightly. It is
	// written unless all that read it in the segment do so in the kernel that
	// computes it. What came of it the plan knows.
	LifeDear
	// LifeWrite: a result that must be in memory after the segment.
	LifeWrite
)

// Dear reports ops whose results are too dear to be computed twice: those that
// look at many elements for one.
func Dear(op ir.Op) bool { return op.Info().RowOp }

// Tensor is one relative id of a segment.
type Tensor struct {
	DT    ir.DType
	Shape ir.Shape
	Def   int32 // index of the node that makes it, -1 for an input
	Life  Life
	// Memory is how many elements an input has in memory where that is fewer
	// than its shape says, as in a view that repeats them; else 0.
	Memory int64
}

// Scalar is one run-time scalar of a segment.
type Scalar struct {
	DT   ir.DType
	Bits uint64
}

// Segment is a stretch of a stream about to run: nodes in program order over
// relative tensor ids (numbered by first appearance, operands before results).
// Node i's operands are Nodes[i].Args: tensor ids index Tensors, scalar slots
// index Scalars. It is what fusion explores and what plans are bound to; the
// slices belong to the stream and are valid only during the call.
type Segment struct {
	Nodes   []ir.Node
	Out     []int32 // relative id of each node's result
	Tensors []Tensor
	Scalars []Scalar
}
