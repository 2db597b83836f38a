package fusion

import (
	"github.com/millrace-go/millrace/codegen"
)

// Plan is how a segment runs, for every size its guards allow. All tensor
// numbers are the segment's relative ids, all node numbers indices into its
// Nodes, so a plan serves every segment of the same relative form.
type Plan struct {
	Steps   []Step
	Aliases []Alias
	Guards  []Guard
	// Refusals explain, for pairs of steps that might have been one, why not.
	Refusals []Refusal
	// Score is the predicted time saved over one kernel per op, in seconds.
	Score float64
}

// Step is one kernel of a plan.
type Step struct {
	Kernel *codegen.Kernel
	// Domain is the tensor whose shape is the iteration domain. In a reduction
	// it is the reduced operand, and Axes are the reduced axes.
	Domain int
	Axes   []int
	// Operands holds one entry per operand of the kernel.
	Operands []Operand
	// Scalars maps the kernel's scalar slots to the segment's.
	Scalars []int
	// Nodes are the nodes this step computes, ascending (a node may be in
	// several steps where it is recomputed).
	Nodes []int
}

// Operand says which tensor an operand of a kernel is, and how to get from a
// point of the domain to an element of it.
type Operand struct {
	Tensor int
	Path   []Hop
}

// Hop is one step from the shape of a value to the shape of something it is
// made from. From a node's result to its operand Arg: for an elementwise node
// by broadcasting (aligned at the last dim), for a view node through the view;
// for a reduction node from its operand to its result (Up).
type Hop struct {
	Node int
	Arg  int
	Up   bool // from the operand to the result: for stores of reduced or viewed values
}

// Alias makes a result a view of another tensor's memory: nothing is computed.
type Alias struct {
	Tensor int   // the result
	Of     int   // an input, or a tensor that a step writes
	Path   []Hop // from Tensor to Of
}

// Guard is a fact of the real shapes that the plan relies on beyond what the
// relative form says: two dims that are equal (B >= 0), or, with ScalarA and
// ScalarB, two scalar slots of the same bits.
type Guard struct {
	Scalar  bool
	A, ADim int // tensor and dim; or scalar slot in A
	B, BDim int
}

// Refusal is one reason why two steps are not one kernel.
type Refusal struct {
	A, B   int    // steps
	Reason string // "would write past a broadcast: …"
	Bytes  int64  // that fusing would have saved at the explored size
}
