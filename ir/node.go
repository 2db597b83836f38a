package ir

import "slices"

// Node is one tensor operation as a program records it: the op, the shape and dtype of its result,
// its operands. A Graph is a list of them, and the queue, fusion and the oracle use the same
// struct.
type Node struct {
	Op    Op
	DT    DType // of the result
	Shape Shape // of the result
	NArgs uint8
	Args  [3]Arg
	Attr  *Attr // nil if the op needs none; immutable
}

// Arg is a tensor or a scalar operand. A scalar is held as its bits in the dtype in which the op
// computes (for creation ops see their rows).
type Arg struct {
	ID     int32 // tensor id; for a scalar its slot in the side table
	Scalar bool
}

// T names a tensor operand, S a scalar one.
func T(id int) Arg   { return Arg{ID: int32(id)} }
func S(slot int) Arg { return Arg{ID: int32(slot), Scalar: true} }

// Attr holds what some ops need besides operands. Axes, Keep, Descending, Mode and Combine are part
// of a plan's key; Start and Step are run-time values.
type Attr struct {
	Axes       []int     // Permute: order; reductions: reduced axes, sorted ascending; scans, sorts, Window, Concat, Gather, Scatter: one axis
	Keep       bool      // reductions keep reduced axes as size 1
	Descending bool      // sorts: largest first; NaN stays last
	Mode       IndexMode // Gather, Scatter
	Combine    Combine   // Scatter
	Start      []int     // Slice, Assign: first index per dim; Pad: elements before, per dim
	Step       []int     // Slice, Assign: per dim, not 0; Pad: 1 + elements between neighbours, per dim; Window: stride and dilation
}

// SameForm reports attributes that are equal except for run-time values: the elements of Start and
// Step.
func (a *Attr) SameForm(b *Attr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Axes, b.Axes) && a.Keep == b.Keep && a.Descending == b.Descending && a.Mode == b.Mode && a.Combine == b.Combine &&
		len(a.Start) == len(b.Start) && len(a.Step) == len(b.Step)
}

// AttrSet is a set of fields of Attr.
type AttrSet uint8

const (
	AttrAxes AttrSet = 1 << iota
	AttrKeep
	AttrDescending
	AttrStart
	AttrStep
	AttrMode
	AttrCombine
)

// Has reports a field.
func (s AttrSet) Has(field AttrSet) bool { return s&field != 0 }

// IndexMode says what Gather and Scatter do with an index out of range.
type IndexMode uint8

const (
	IndexError IndexMode = iota // the program fails with an [IndexFault]
	IndexClamp                  // the nearest index in range
	IndexDrop                   // a gather gives 0, a scatter leaves the element out
	NumIndexModes
)

// Combine says what a scatter does to the element that an index names.
type Combine uint8

const (
	CombineSet Combine = iota // the last one in row-major order stays
	CombineAdd
	CombineMax
	CombineMin
	CombineMul
	NumCombines
)

var (
	indexModeNames = [NumIndexModes]string{"error", "clamp", "drop"}
	combineNames   = [NumCombines]string{"set", "add", "max", "min", "mul"}
	combineOps     = [NumCombines]Op{OpInvalid, Add, Maximum, Minimum, Mul}
)

// String is the mode's name in the text form.
func (m IndexMode) String() string { return nameOf(indexModeNames[:], int(m)) }

// String is the combination's name in the text form.
func (c Combine) String() string { return nameOf(combineNames[:], int(c)) }

// Op is the elementwise op that joins the old element and the new one; OpInvalid for CombineSet,
// which takes the new one.
func (c Combine) Op() Op {
	if c >= NumCombines {
		return OpInvalid
	}
	return combineOps[c]
}

func nameOf(names []string, i int) string {
	if i >= len(names) {
		return "invalid"
	}
	return names[i]
}
