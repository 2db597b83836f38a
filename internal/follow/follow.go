// Package follow is the hook through which package autodiff sees the ops on watched tensors. Only
// package millrace calls it.
//
// Engine part: no compatibility promise; use package autodiff.
package follow

import "github.com/millrace-go/millrace/ir"

// Call is an op recorded on operands at least one of which autodiff follows. T is millrace.Tensor,
// which this package cannot import.
type Call[T any] struct {
	Op   ir.Op  // OpInvalid for a composite
	Name string // for messages
	Rule string // of a composite

	In   [3]*T     // handles that the callee owns; nil for a scalar, or an operand left out
	Bits [3]uint64 // scalars, as Op takes them
	Attr *ir.Attr  // of Op
	With any       // further arguments of a composite; the type depends on Rule
	Out  *T        // the result, which carries no node yet
}

// Hook is a func(*Call[millrace.Tensor]) any, set by package autodiff. It returns the node for the
// result, or nil if the result is not followed.
var Hook any

// Functions of package autodiff for Recordings, nil without it.
var (
	// Count is the number of ops followed so far.
	Count func() uint64
	// Seal drops the nodes recorded since Count was after, for the tensors that depend on them. It
	// returns the replacement node of each tensor, nil if it is not followed, and reports which
	// tensors depend on dropped nodes.
	Seal func(after uint64, ts []any) (nodes []any, made []bool)
	// Sealed reports whether Seal made a node.
	Sealed func(node any) bool
)

// Functions of package millrace for the hook's owner; tensors are *millrace.Tensor.
var (
	// Node is a tensor's node, nil if it is not followed.
	Node func(t any) any
	// Shape is t's shape, not a copy.
	Shape func(t any) ir.Shape
	// Watch makes a handle of t's value that carries a node, even after Set.
	Watch func(t, node any) any
	// Carry gives a node to the result of an op on a tensor with a node, and reports whether the
	// result has space for it.
	Carry func(t, node any) bool
	// Plain makes a handle for a few calls; ops on it are not followed.
	Plain func(t any) any
	// Hold makes a handle in t's scope that keeps t's value, with its node if any, until LetGo.
	Hold func(t any) any
	// Adopt makes the scope of t's value end t, a handle of a Call's In or of Plain, unless it is
	// ended before.
	Adopt func(t any)
	// Want keeps t's value in memory after its segment until LetGo, as Hold does. The operands
	// of a Call are wanted, too. t has no other owner.
	Want func(t any)
	// LetGo ends a handle of Hold, an adopted one or a wanted one.
	LetGo func(t any)
	// Drop ends a handle of Plain or of a Call's In.
	Drop func(t any)
	// Full makes a tensor of one number in t's scope or on t's stream.
	Full func(t any, dt ir.DType, value float64, shape []int) any
	// Contract is millrace.Einsum with labels instead of letters, on handles that only the caller
	// has.
	Contract func(t any, lt []int, u any, lu, out []int) any
	// OneDevice reports whether two tensors are on one device.
	OneDevice func(t, u any) bool
)

// The composites that have rules of their own: types of Call.With.

// Contraction is every matrix product: labels of the operands' dims and of the result's, and the
// labels that are summed over.
type Contraction struct{ T, U, Out, Sum []int }

// Norm is a row op: its axes as given by the caller, whether they stay with size 1, and the epsilon
// of a normalisation.
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
