// Package follow is the hook by which package autodiff sees the ops on tensors that it
// watches. Package millrace calls it; nobody else does.
//
// Engine part: no compatibility promise; use package autodiff.
package follow

import "github.com/millrace-go/millrace/ir"

// Call is an op that was recorded on operands of which autodiff follows at least one. T
// is millrace.Tensor, which this package must not know.
type Call[T any] struct {
	Op   ir.Op  // OpInvalid for a composite
	Name string // for messages
	Rule string // of a composite

	In   [3]*T     // handles that are the callee's own; nil for a scalar, or an operand left out
	Bits [3]uint64 // scalars, as Op takes them
	Attr *ir.Attr  // of Op
	With any       // what else a composite was told; its type goes with Rule
	Out  *T        // the result, which carries no node yet
}

// Hook is a func(*Call[millrace.Tensor]) any, set by package autodiff. It returns the node
// that the result is to carry, or nil where nothing is to be followed.
var Hook any

// What package autodiff does for Recordings, nil without it.
var (
	// Count is how many ops were followed so far.
	Count func() uint64
	// Seal gives up what was followed since Count was after, as far as tensors come of it.
	// It returns what each is to carry instead, nil where one is not followed, and says which
	// of them come of it.
	Seal func(after uint64, ts []any) (nodes []any, made []bool)
	// Sealed reports a node that Seal made.
	Sealed func(node any) bool
)

// What package millrace does for the hook's owner; tensors are *millrace.Tensor.
var (
	// Node is what a tensor carries, nil where it is not followed.
	Node func(t any) any
	// Shape is t's shape, no copy of it.
	Shape func(t any) ir.Shape
	// Watch makes a handle of t's value that carries a node, whatever Set gives it later.
	Watch func(t, node any) any
	// Carry gives a node to the tensor that an op on a tensor with one has made, and
	// reports whether there is room for it.
	Carry func(t, node any) bool
	// Plain makes a handle, for one call or a few, of which ops are not followed.
	Plain func(t any) any
	// Hold makes a handle in t's scope that keeps t's value, as it is followed or not,
	// until LetGo.
	Hold func(t any) any
	// Adopt makes the scope that t's value is in end t, a handle of a Call's In or of Plain,
	// if nobody does before.
	Adopt func(t any)
	// LetGo ends a handle of Hold, or one that was adopted.
	LetGo func(t any)
	// Drop ends a handle of Plain or of a Call's In.
	Drop func(t any)
	// Full makes a tensor of one number in the scope, or on the stream, that t is in.
	Full func(t any, dt ir.DType, value float64, shape []int) any
	// Contract is millrace.Einsum with labels in place of letters, of handles that nobody
	// else has.
	Contract func(t any, lt []int, u any, lu, out []int) any
	// OneDevice reports that two tensors are on one device.
	OneDevice func(t, u any) bool
)

// The composites that are followed whole: values of Call.With.

// Contraction is every matrix product: labels of the operands' dims and the result's,
// and those that are summed over.
type Contraction struct{ T, U, Out, Sum []int }

// Norm is a row op: its axes, as the caller gave them, whether they stay with size 1, and
// the epsilon of a normalisation.
type Norm struct {
	List []int
	Keep bool
	Eps  float64
	Ddof int // of a deviation
}

// Windows is ReduceWindow, or Windows along one axis. W is millrace.Window.
type Windows[W any] struct {
	How  uint8 // millrace.Reduction
	Axis int
	List []W
}
