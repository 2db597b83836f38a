package fusion

import (
	"github.com/millrace-go/millrace/codegen"
)

// Plan says how a segment runs, for every size that its guards allow. Tensor numbers are the
// segment's relative ids; node numbers are indices into its Nodes. So one plan serves every
// segment of the same relative form.
type Plan struct {
	Steps   []Step
	Aliases []Alias
	Chains  []Chain
	Guards  []Guard
	Sizes   []Size // the plan's size class: see [Size]
	// Refusals say why two steps that share data are not one kernel.
	Refusals []Refusal
	// Score is the predicted time saved over one kernel per op, in seconds; 0 for a greedy plan.
	Score float64
	// Mode says which search made the plan. String does not print it.
	Mode Mode

	uses *Uses
}

// Step is one kernel of a plan.
type Step struct {
	Kernel *codegen.Kernel
	// Domain is the tensor whose shape is the iteration domain. In a kernel of rows it is the
	// operand of the row ops (of a scatter, its indices), and Axes are the axes of the rows.
	Domain int
	Axes   []int
	// Operands holds one entry per operand of the kernel.
	Operands []Operand
	// Scalars maps the kernel's scalar slots to the segment's.
	Scalars []int
	// Nodes are the nodes that this step computes, ascending. A node that is recomputed is in
	// several steps.
	Nodes []int
	// InPlace lists the outputs that may take over the memory of an input.
	InPlace []InPlace
}

// InPlace says that output Out of a step may take over the memory of input In. At every point Out
// writes the element that In reads there, and nothing else in the step reads that element. Both
// have the same shape and dtype. Before reuse the caller must check that the real layouts of both
// are the same and that nothing else needs In's memory, in this step or later. One input may be
// offered to several outputs, and one output several inputs.
type InPlace struct {
	Out, In int // operands
}

// Operand names the tensor of a kernel operand. Path leads from a point of the domain to an
// element of the tensor.
type Operand struct {
	Tensor int
	Path   []Hop
}

// Hop is one step of a path. It goes from the shape of a value to the shape of something that the
// value is made from, or back.
//
// Across a view node a hop goes from the result to the operand, or Up from the operand to the
// result (Permute and Reshape only, which can be inverted). Across a reduction node it goes Up; it
// goes down only where all reduced dims are 1. Across a Concat it may go Up, from operand Arg to
// the place of that operand in the result. With Node -1 a hop is a broadcast, aligned at the last
// dim, to the shape of tensor Arg. Elementwise nodes need only this hop, and they need none where
// the shapes are equal in every segment of the plan.
//
// Across a node of data movement a hop goes to operand Arg, to the place that the element has
// there if it is in operand Arg at all. Bounds tell whether it is. The path of an index operand may
// end in a hop with a Bound: a number that says on which side of operand Arg's part of the result
// the element is, along dim Dim.
type Hop struct {
	Node  int
	Arg   int // a tensor where Node is -1, else an operand of the node
	Up    bool
	Bound Bound
	Dim   int
}

// raises reports a hop that goes up: from an operand of a Concat to its result, or up a view or a
// reduction.
func (h Hop) raises() bool { return h.Node >= 0 && h.Up }

// bounds reports an operand that is a bound, not an element of its tensor.
func (o *Operand) bounds() bool { return len(o.Path) > 0 && o.Path[len(o.Path)-1].Bound != NoBound }

// Bound names the number that the last hop of an index operand's path computes.
type Bound uint8

const (
	NoBound Bound = iota
	Low           // not negative where the element is not before the part's first element
	High          // not negative where the element is not after the part's last element
	Between       // 0 where the element is not in a gap between two elements of the part
)

// Alias makes a result a view of another tensor's memory. It computes nothing.
type Alias struct {
	Tensor int   // the result
	Of     int   // an input, or a tensor that a step writes
	Path   []Hop // from Tensor to Of
}

// Guard is a fact of the real shapes or scalars that the plan relies on and that the relative form
// does not imply. With Scalar, two scalar slots hold the same bits. With Unit, the step of a node
// is 1 or -1. Otherwise two dims are equal. Explore makes guards for equal scalars where they save
// work, and for the dims that a Pad or an Assign does not change. It relies on no other equality
// that may be chance, so the plan serves other sizes.
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
	Bytes  int64  // memory traffic that fusing would have saved, at the explored sizes
}
