package segment

import "github.com/millrace-go/millrace/ir"

// Life says what must become of a tensor when its segment runs.
type Life uint8

const (
	// LifeInput: an operand that has memory already.
	LifeInput Life = iota
	// LifeInputDying: an operand whose handle is released and that has no other readers. The
	// last kernel that reads it may overwrite its buffer.
	LifeInputDying
	// LifeDead: a result that no handle outside the segment names.
	LifeDead
	// LifeVirtual: a result that a handle still names. It need not be written: if it is needed,
	// its recipe computes it again.
	LifeVirtual
	// LifeCostly: as LifeVirtual, but costly to recompute. It is written unless all its readers in
	// the segment are in the kernel that computes it. The plan knows which of both happened.
	LifeCostly
	// LifeWrite: a result that must be in memory after the segment.
	LifeWrite
)

// Costly reports operations whose results are costly to recompute, because they read many elements
// for each element of the result.
func Costly(op ir.Op) bool { return op.Info().RowOp }

// Tensor is one relative id of a segment.
type Tensor struct {
	DT    ir.DType
	Shape ir.Shape
	Def   int32 // index of the node that makes it, -1 for an input
	Life  Life
	Lent  bool // of LifeWrite: in memory only until nobody wants it, then virtual
	// Memory is the number of elements that an input has in memory if it is smaller than its
	// shape says, as in a view that repeats elements; else 0.
	Memory int64
}

// Scalar is one run-time scalar of a segment.
type Scalar struct {
	DT   ir.DType
	Bits uint64
}

// Segment is a stretch of a stream that is about to run. Its nodes are in program order. Tensor
// ids are relative: numbered by first appearance, operands before results. The operands of node i,
// in Nodes[i].Args, are indices into Tensors or, for scalars, into Scalars. Package fusion explores
// segments, and plans are bound to them. The slices belong to the stream and are valid only during
// the call.
type Segment struct {
	Nodes   []ir.Node
	Out     []int32 // relative id of each node's result
	Tensors []Tensor
	Scalars []Scalar
}
