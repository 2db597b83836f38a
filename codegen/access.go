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

// ClassOf is the class of operand arg along the innermost dim of a launch;
// one without dims has one point.
func ClassOf(l *runtime.Launch, arg int) AccessClass {
	if l.Rank == 0 {
		return Classify(&l.Args[arg], 0, 1)
	}
	return Classify(&l.Args[arg], l.Rank-1, l.Dims[l.Rank-1])
}

// Position is where a point's element is: the access's strides, then its
// stages.
func Position(a *runtime.Access, point []int64) int64 {
	p := a.Offset
	for d, i := range point {
		p += a.Stride[d] * i
	}
	for i := range a.Stages {
		p = stagePosition(&a.Stages[i], p)
	}
	return p
}

// stagePosition takes a position apart row-major and puts it together again.
func stagePosition(s *runtime.Stage, p int64) int64 {
	q := s.Offset
	for d := len(s.Dims) - 1; d >= 0; d-- {
		q += p % s.Dims[d] * s.Stride[d]
		p /= s.Dims[d]
	}
	return q
}

// stores reports that an output is written at a point: not where the point is
// past 0 in a dim along which the output stands still.
func stores(a *runtime.Access, point []int64) bool {
	for d, i := range point {
		if i != 0 && a.Stride[d] == 0 {
			return false
		}
	}
	return true
}
