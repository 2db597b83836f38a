package adhook

import "github.com/millrace-go/millrace/ir"

// Node is what a followed tensor carries. Package autodiff makes all nodes.
type Node[T any] interface {
	// Follow makes the node of an op's result. It returns nil if no derivative goes through the
	// op. Any operand's node will do. The callee owns the handles in c.In.
	Follow(c *Call[T]) Node[T]
	// Seal drops the nodes recorded since [Count] was after, for the tensors that depend on them.
	// It returns the replacement node of each tensor, nil if it is not followed, and reports which
	// tensors depend on dropped nodes. Any node will do.
	Seal(after uint64, ts []*T) (nodes []Node[T], made []bool)
	// Sealed reports whether Seal made the node.
	Sealed() bool
}

// Call is an op recorded on operands at least one of which carries a node.
type Call[T any] struct {
	Op   ir.Op  // OpInvalid for a composite
	Name string // for messages

	In   [3]*T     // handles that the callee owns; nil for a scalar, or an operand left out
	Bits [3]uint64 // scalars, as Op takes them
	Attr *ir.Attr  // of Op
	With Composite // nil for an op of ir
	Out  *T        // the result, which carries no node yet
}

// Tensors has the functions of package millrace that only package autodiff calls. P is
// millrace.Place.
type Tensors[T, P any] interface {
	// Node is a tensor's node, nil if it is not followed.
	Node(t *T) Node[T]
	// Shape is t's shape, not a copy.
	Shape(t *T) ir.Shape
	// Signature returns t's signature, 0 if it is unknown. That of a watched tensor depends on its
	// current value.
	Signature(t *T) uint64
	// Watch makes a handle of t's value that carries a node, even after Set.
	Watch(t *T, n Node[T]) *T
	// Carry gives a node to the result of an op on a tensor with a node, and reports whether the
	// result has space for it.
	Carry(t *T, n Node[T]) bool
	// Plain makes a handle for a few calls; ops on it are not followed.
	Plain(t *T) *T
	// Hold makes a handle in t's scope that keeps t's value, with its node if any, until LetGo.
	Hold(t *T) *T
	// Adopt makes the scope of t's value end t, a handle of a Call's In or of Plain, unless it is
	// ended before.
	Adopt(t *T)
	// Want keeps t's value in memory after its segment until LetGo, as Hold does. The operands of
	// a Call are wanted, too. t has no other owner.
	Want(t *T)
	// LetGo ends a handle of Hold, an adopted one or a wanted one.
	LetGo(t *T)
	// Drop ends a handle of Plain or of a Call's In.
	Drop(t *T)
	// Full makes a tensor of one number in t's scope or on t's stream.
	Full(t *T, dt ir.DType, value float64, shape []int) *T
	// Contract is millrace.Einsum with labels instead of letters, on handles that only the caller
	// has.
	Contract(t *T, lt []int, u *T, lu, out []int) *T
	// Steps begins a list of steps.
	Steps() Steps[T]
	// Beside is the place of a step that is made without operands, on t's stream. t is a step.
	Beside(t *T) P
	// OneDevice reports whether two tensors are on one device.
	OneDevice(t, u *T) bool
}

// Steps is a list of tensors that a rule makes. Every result of an op with a step among its
// operands is a step of the same list.
type Steps[T any] interface {
	// Step makes a step of t's value. If plain is set, ops on it are not followed.
	Step(t *T, plain bool) *T
	// Use returns a step of t's value. If possible it is t, which is a step until End and is not
	// released then. The caller is t's only owner.
	Use(t *T) *T
	// Take takes a step off the list and makes the caller its owner, as Hold does. It returns false
	// for other tensors, and for what Step or Use returned.
	Take(t *T) bool
	// End releases the steps that are left.
	End()
}

// tensors is a Tensors[millrace.Tensor, millrace.Place].
var tensors any

// Provide sets what Of returns. Package millrace calls it when it is initialised.
func Provide[T, P any](t Tensors[T, P]) { tensors = t }

// Of returns what package millrace provided. T and P must be its Tensor and its Place.
func Of[T, P any]() Tensors[T, P] { return tensors.(Tensors[T, P]) }
