package ir

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxRank is the highest number of dimensions a tensor may have.
const MaxRank = 8

// Shape is a tensor's dimensions, outermost first; the empty shape is a scalar. Shapes are
// immutable once attached to an op and are shared freely.
type Shape []int

// Elems is the number of elements. It cannot overflow for a shape that passed Check.
func (s Shape) Elems() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal reports the same rank and dimensions.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i, d := range s {
		if d != t[i] {
			return false
		}
	}
	return true
}

// String prints (2,3); () for a scalar.
func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, d := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, d)
	}
	b.WriteByte(')')
	return b.String()
}

// Check reports why s cannot be a tensor's shape: rank, negative dimensions, or more bytes than an
// int can count at eight bytes per element.
func (s Shape) Check() error {
	if len(s) > MaxRank {
		return fmt.Errorf("rank %d is above the limit of %d", len(s), MaxRank)
	}
	n, empty := 1, slices.Contains(s, 0) // then no product is too large
	for i, d := range s {
		switch {
		case d < 0:
			return fmt.Errorf("dimension %d is negative: %v", i, s)
		case empty:
		case n > math.MaxInt/8/d:
			return fmt.Errorf("%v has more elements than can be addressed", s)
		default:
			n *= d
		}
	}
	return nil
}

// Broadcast is the NumPy result shape of two operands: aligned at the last dimension, equal or 1.
// It returns one of the operands itself when it can.
func Broadcast(a, b Shape) (Shape, bool) {
	if a.Equal(b) {
		return a, true
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	off := len(a) - len(b)
	fits := true // b expands to a
	for i, d := range b {
		e := a[off+i]
		if d == e || d == 1 {
			continue
		}
		if e != 1 {
			return nil, false
		}
		fits = false
	}
	if fits {
		return a, true
	}
	r := append(Shape(nil), a...)
	for i, d := range b {
		if d != 1 {
			r[off+i] = d
		}
	}
	if r.Equal(b) {
		return b, true
	}
	return r, true
}

// RowMajor is the element stride of every dimension of a dense tensor.
func (s Shape) RowMajor() []int {
	st := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		st[i] = n
		n *= s[i]
	}
	return st
}
