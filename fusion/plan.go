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
	Chains  []Chain
	Guards  []Guard
	Sizes   []Size // its size class: see [Size]
	// Refusals explain, for pairs of steps that might have been one, why not.
	Refusals []Refusal
	// Score is the predicted time saved over one kernel per op, in seconds.
	Score float64
	// Mode is how hard the plan was searched for. It is not part of its text.
	Mode Mode

	uses *Uses
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
	// InPlace lists which outputs may take over the memory of which inputs.
	InPlace []InPlace
}

// InPlace says that output Out of a step writes, at every point, the element
// that input In reads at that point and that nothing else in the step reads.
// Both have one shape and dtype. So Out may be given In's memory if that is
// dense row-major, ends with the tensor, and is not needed after the step. One
// input may be offered to several outputs, and one output several inputs.
type InPlace struct {
	Out, In int // operands
}

// Operand says which tensor an operand of a kernel is, and how to get from a
// point of the domain to an element of it.
type Operand struct {
	Tensor int
	Path   []Hop
}

// Hop is one step from the shape of a value to the shape of something it is
// made from, or the other way. Across a view node it goes from the result to
// the operand through the view, or Up from the operand to the result (Permute
// and Reshape, which can be undone); across a reduction node only Up. With
// Node -1 it is a broadcast, aligned at the last dim, to the shape of tensor
// Arg: elementwise nodes need no other, and where shapes are equal in every
// segment of the plan they need none.
//
// Across a node of data movement it goes to operand Arg: to where the element
// lies in it if it lies in it at all. That is what bounds tell: with a Bound a
// path of an index operand ends, in a number that says on which side of the
// part of the result that is operand Arg's the element is, along dim Dim.
type Hop struct {
	Node  int
	Arg   int // a tensor where Node is -1, else an operand of the node
	Up    bool
	Bound Bound
	Dim   int
}

// raises reports a hop from an operand of a Concat up to its result, or across a
// view or a reduction.
func (h Hop) raises() bool { return h.Node >= 0 && h.Up }

// bounds reports an operand that is no element of its tensor but a bound.
func (o *Operand) bounds() bool { return len(o.Path) > 0 && o.Path[len(o.Path)-1].Bound != NoBound }

// Bound is what the last hop to an index operand computes.
type Bound uint8

const (
	NoBound Bound = iota
	Low           // not negative where the element is not before the part
	High          // not negative where it is not behind it
	Between       // 0 where it is not between two of the part's elements
)

// Alias makes a result a view of another tensor's memory: nothing is computed.
type Alias struct {
	Tensor int   // the result
	Of     int   // an input, or a tensor that a step writes
	Path   []Hop // from Tensor to Of
}

// Guard is a fact of the real shapes that the plan relies on beyond what the
// relative form says: with Scalar two scalar slots of the same bits, with Unit
// a step, else two dims that are equal. Explore itself ties plans to scalars,
// and to which dims a Pad or an Assign leaves as they are; it leaves apart what
// only chance relates, so that other sizes keep their plan.
type Guard struct {
	Scalar  bool
	Unit    bool // the step of node A along ADim is 1 or -1
	A, ADim int  // tensor and dim; or scalar slot in A
	B, BDim int
}

// Refusal is one reason why two steps are not one kernel.
type Refusal struct {
	A, B   int    // steps
	Reason string // "would write past a broadcast: …"
	Bytes  int64  // that fusing would have saved at the explored size
}
