package queue

import "github.com/millrace-go/millrace/ir"

// Form is a shape with properties that recording needs often. Forms are immutable, and tensors
// that a program makes from one another share them. Two equal pointers mean equal shapes, which
// avoids most comparisons, and a handle needs one word for its shape instead of three.
type Form struct {
	Shape ir.Shape
	Elems int64
	Ones  uint8 // the dims of size 1: one bit per dim, counted from the last
}

// NewForm makes the form of a valid shape.
func NewForm(shape ir.Shape) *Form {
	f := &Form{Shape: shape, Elems: int64(shape.Elems())}
	for back := 1; back <= len(shape); back++ {
		if shape[len(shape)-back] == 1 {
			f.Ones |= 1 << (back - 1)
		}
	}
	return f
}

// Equal reports the same shape.
func (f *Form) Equal(g *Form) bool { return f == g || f.Shape.Equal(g.Shape) }
