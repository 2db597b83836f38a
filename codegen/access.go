package codegen

import "github.com/millrace-go/millrace/runtime"

// AccessClass is what a compiled variant may know of an operand: how its
// position moves along the innermost dim. Sizes, outer strides and offsets
// stay run-time values.
type AccessClass uint8

const (
	Contiguous  AccessClass = iota // stride 1, or a dim of size 1, where any stride is as good
	Splat                          // stride 0
	Strided                        // any other stride
	Staged                         // the position goes through stages
	NumAccesses                    // how many there are
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
