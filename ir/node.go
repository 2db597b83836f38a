package ir

// Node is one tensor operation as a program records it: the op, the shape and
// dtype of its result, its operands. A Program is a list of them, and the same
// struct travels from the queue to fusion and the oracle.
type Node struct {
	Op    Op
	DT    DType // of the result
	Shape Shape // of the result
	NArgs uint8
	Args  [3]Arg
	Attr  *Attr // nil where the op needs none; immutable
}

// Arg is a tensor or a scalar operand. A scalar is held as its bits in the
// dtype that the op computes in (for creation ops: see their rows).
type Arg struct {
	ID     int32 // tensor id; for a scalar its slot in the side table
	Scalar bool
}

// T names a tensor operand, S a scalar one.
func T(id int) Arg   { return Arg{ID: int32(id)} }
func S(slot int) Arg { return Arg{ID: int32(slot), Scalar: true} }

// Attr holds what some ops need besides operands. Axes enter a plan's key
// verbatim; Start and Step of slices are run-time values.
type Attr struct {
	Axes  []int // Permute: order; Sum, Max: reduced axes, sorted ascending
	Keep  bool  // reductions keep reduced axes as size 1
	Start []int // Slice, per dim
	Step  []int // Slice, per dim, not 0
}
