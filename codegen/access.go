package codegen

import "github.com/millrace-go/millrace/runtime"

// AccessClass is what the code of a variant may assume about an operand: how its position moves
// along the innermost dim. Sizes, outer strides and offsets remain run-time values.
type AccessClass uint8

const (
	Contiguous  AccessClass = iota // stride 1, or a dim of size 1, where every stride is the same
	Splat                          // stride 0
	Strided                        // any other stride
	Staged                         // the position goes through stages
	NumAccesses                    // the number of classes
)

// String is one letter: c, b (broadcast), s, v (view).
func (c AccessClass) String() string {
	if c >= NumAccesses {
		return "?"
	}
	return "cbsv"[c : c+1]
}

// Classify gives the class of an access along dim inner, whose size is n.
func Classify(a *runtime.Access, inner int, n int64) AccessClass {
	switch {
	case len(a.Stages) > 0:
		return Staged
	case n == 1 || a.Stride[inner] == 1:
		return Contiguous
	case a.Stride[inner] == 0:
		return Splat
	}
	return Strided
}

// ClassOf is the class of operand arg along the innermost dim of a launch. A launch without dims
// has one point.
func ClassOf(l *runtime.Launch, arg int) AccessClass {
	if l.Rank == 0 {
		return Classify(&l.Args[arg], 0, 1)
	}
	return ClassAlong(l, arg, l.Rank-1)
}

// ClassAlong is the class along a given dim.
func ClassAlong(l *runtime.Launch, arg, dim int) AccessClass {
	return Classify(&l.Args[arg], dim, l.Dims[dim])
}

// Position is the place of a point's element: first the access's strides, then its stages.
func Position(a *runtime.Access, point []int64) int64 {
	p := a.Offset
	for d, i := range point {
		p += a.Stride[d] * i
	}
	for i := range a.Stages {
		p = a.Stages[i].Position(p)
	}
	return p
}

// stores reports that an output is written at a point. It is not if the point's index is above 0 in
// a dim along which the output has stride 0.
func stores(a *runtime.Access, point []int64) bool {
	for d, i := range point {
		if i != 0 && a.Stride[d] == 0 {
			return false
		}
	}
	return true
}
