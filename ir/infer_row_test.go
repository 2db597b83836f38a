package ir

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestInferRows(t *testing.T) {
	f := func(dims ...int) Operand { return Operand{DT: Float32, Shape: dims} }
	m := func(dims ...int) Operand { return Operand{DT: Bool, Shape: dims} }
	i := func(dims ...int) Operand { return Operand{DT: Int32, Shape: dims} }
	s := Operand{Scalar: true}
	axes := func(a ...int) *Attr { return &Attr{Axes: a} }
	window := func(a, stride, dilation int) *Attr { return &Attr{Axes: []int{a}, Step: []int{stride, dilation}} }
	const big = math.MaxInt
	for _, c := range []struct {
		name  string
		op    Op
		attr  *Attr
		dt    DType
		shape Shape
		args  []Operand
		want  string // "dtype(shape)", or part of the error
		err   error
	}{
		{"prod", Prod, axes(0), 0, nil, []Operand{f(2, 3)}, "float32(3)", nil},
		{"empty prod", Prod, axes(0), 0, nil, []Operand{f(0, 3)}, "float32(3)", nil},
		{"empty min", Min, axes(1), 0, nil, []Operand{f(2, 0)}, "min of (2,0) over axis 1, which is empty", ErrShape},
		{"no axes", Min, nil, 0, nil, []Operand{f(2)}, "without axes", ErrShape},
		{"axis out of range", Prod, axes(2), 0, nil, []Operand{f(2, 3)}, "bad axes [2]", ErrShape},
		{"axis negative", Sum, axes(-1), 0, nil, []Operand{f(2, 3)}, "bad axes [-1]", ErrShape},
		{"axis repeated", Any, axes(1, 1), 0, nil, []Operand{m(2, 3)}, "bad axes [1 1]", ErrShape},
		{"any", Any, axes(1), 0, nil, []Operand{m(2, 3)}, "bool(2)", nil},
		{"all of floats", All, axes(1), 0, nil, []Operand{f(2, 3)}, "all does not take float32", ErrDType},
		{"sum of bools", Sum, axes(1), 0, nil, []Operand{m(2, 3)}, "sum does not take bool", ErrDType},
		{"of a scalar", Sum, axes(), 0, nil, []Operand{s}, "operand 0 of sum is a scalar", ErrShape},
		{"argmax", ArgMax, &Attr{Axes: []int{0, 1}, Keep: true}, Int64, nil, []Operand{f(2, 3)}, "int64(1,1)", nil},
		{"argmin as int32", ArgMin, axes(1), Int32, nil, []Operand{i(2, 3)}, "int32(2)", nil},
		{"argmax as float", ArgMax, axes(1), Float32, nil, []Operand{f(2, 3)}, "int32 or int64, not float32", ErrDType},
		{"argmax of nothing", ArgMax, axes(0), Int32, nil, []Operand{f(0)}, "argmax of (0) over axis 0, which is empty", ErrShape},
		{"argmax of no rows", ArgMax, axes(1), Int32, nil, []Operand{f(0, 3)}, "int32(0)", nil},
		{"argmax as long as int32 counts", ArgMax, axes(0, 1), Int32, nil, []Operand{{DT: Uint8, Shape: Shape{1 << 16, 1 << 15, 2}}}, "int32(2)", nil},
		{"argmax longer", ArgMax, axes(0, 1), Int32, nil, []Operand{{DT: Uint8, Shape: Shape{1 << 16, 1<<15 + 1}}}, "2147549184 positions do not fit int32", ErrShape},
		{"dot", Dot, axes(2), 0, nil, []Operand{f(2, 3, 4), f(2, 3, 4)}, "float32(2,3)", nil},
		{"empty dot", Dot, axes(0), 0, nil, []Operand{f(0, 2), f(0, 2)}, "float32(2)", nil},
		{"dot of two shapes", Dot, axes(1), 0, nil, []Operand{f(2, 3), f(2, 1)}, "dot of (2,3) and (2,1): the shapes differ", ErrShape},
		{"dot of two dtypes", Dot, axes(1), 0, nil, []Operand{f(2, 3), i(2, 3)}, "use Cast", ErrDType},
		{"dot of one", Dot, axes(1), 0, nil, []Operand{f(2, 3)}, "takes 2 operands, got 1", nil},
		{"dot by a scalar", Dot, axes(0), 0, nil, []Operand{f(2), s}, "operand 1 of dot is a scalar", ErrShape},
		{"cumsum", CumSum, axes(1), 0, nil, []Operand{i(2, 3)}, "int32(2,3)", nil},
		{"empty cummax", CumMax, axes(0), 0, nil, []Operand{f(0, 2)}, "float32(0,2)", nil},
		{"cumsum along two", CumSum, axes(0, 1), 0, nil, []Operand{i(2, 3)}, "takes one axis", ErrShape},
		{"cumsum along none", CumSum, axes(), 0, nil, []Operand{i(2, 3)}, "takes one axis", ErrShape},
		{"cumsum 0-d", CumSum, axes(0), 0, nil, []Operand{i()}, "bad axes", ErrShape},
		{"cumprod of bools", CumProd, axes(0), 0, nil, []Operand{m(2)}, "does not take bool", ErrDType},
		{"sort", Sort, axes(0), 0, nil, []Operand{f(2, 3)}, "float32(2,3)", nil},
		{"argsort", ArgSort, axes(0), Int64, nil, []Operand{f(2, 3)}, "int64(2,3)", nil},
		{"argsort as uint8", ArgSort, axes(0), Uint8, nil, []Operand{f(2, 3)}, "not uint8", ErrDType},
		{"window", Window, window(1, 2, 1), 0, Shape{2, 3, 3}, []Operand{f(2, 7)}, "float32(2,3,3)", nil},
		{"window dilated", Window, window(0, 1, 3), 0, Shape{1, 3, 4}, []Operand{f(7, 4)}, "float32(1,3,4)", nil},
		{"windows of nothing", Window, window(0, 1, 1), 0, Shape{0, 9}, []Operand{f(3)}, "float32(0,9)", nil},
		{"window too many", Window, window(1, 2, 1), 0, Shape{2, 4, 3}, []Operand{f(2, 7)}, "axis 1 has no 4 windows of 3, stride 2, dilation 1", ErrShape},
		{"window too wide", Window, window(0, 1, 1), 0, Shape{1, 8}, []Operand{f(7)}, "no 1 windows of 8", ErrShape},
		{"window of an empty axis", Window, window(0, 1, 1), 0, Shape{1, 1}, []Operand{f(0)}, "no 1 windows", ErrShape},
		{"window huge stride", Window, window(0, big, 1), 0, Shape{3, 1}, []Operand{f(7)}, "no 3 windows", ErrShape},
		{"window huge dilation", Window, window(0, 1, big), 0, Shape{1, 3}, []Operand{f(7)}, "no 1 windows", ErrShape},
		{"window back", Window, window(0, -1, 1), 0, Shape{2, 2}, []Operand{f(7)}, "must be positive", ErrShape},
		{"window of other dims", Window, window(0, 1, 1), 0, Shape{2, 2, 4}, []Operand{f(7, 3)}, "cannot have shape", ErrShape},
		{"window without steps", Window, axes(0), 0, Shape{2, 2}, []Operand{f(7)}, "needs a stride", ErrShape},
		{"window rank", Window, window(0, 1, 1), 0, Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}, []Operand{f(1, 1, 1, 1, 1, 1, 1, 1)}, "rank 9", ErrShape},
	} {
		t.Run(c.name, func(t *testing.T) { inferCase(t, c.op, c.attr, c.dt, c.shape, c.args, c.want, c.err) })
	}
}

// inferCase expects the type want, or an error if cause is not nil.
func inferCase(t *testing.T, op Op, attr *Attr, dt DType, shape Shape, args []Operand, want string, cause error) {
	t.Helper()
	got, s, err := Infer(op, attr, dt, shape, args...)
	if err == nil && cause == nil {
		if text := got.String() + s.String(); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
		return
	}
	if err == nil || cause != nil && !errors.Is(err, cause) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %v with %q", err, cause, want)
	}
}

func TestInferMoves(t *testing.T) {
	f := func(dims ...int) Operand { return Operand{DT: Float32, Shape: dims} }
	m := func(dims ...int) Operand { return Operand{DT: Bool, Shape: dims} }
	i := func(dims ...int) Operand { return Operand{DT: Int32, Shape: dims} }
	s := Operand{Scalar: true}
	axis := func(a int) *Attr { return &Attr{Axes: []int{a}} }
	by := func(start, step []int) *Attr { return &Attr{Start: start, Step: step} }
	ints := func(n ...int) []int { return n }
	const big = math.MaxInt
	for _, c := range []struct {
		name  string
		op    Op
		attr  *Attr
		shape Shape
		args  []Operand
		want  string
		err   error
	}{
		{"pad", Pad, by(ints(1, 0), ints(1, 2)), Shape{4, 5}, []Operand{f(2, 3), s}, "float32(4,5)", nil},
		{"pad of nothing", Pad, by(ints(2), ints(1)), Shape{2}, []Operand{f(0), s}, "float32(2)", nil},
		{"pad that cuts", Pad, by(ints(1), ints(1)), Shape{3}, []Operand{f(3), s}, "dim 0 with 1 before and 0 between does not fit into 3", ErrShape},
		{"pad between that cuts", Pad, by(ints(0), ints(2)), Shape{4}, []Operand{f(3), s}, "does not fit into 4", ErrShape},
		{"pad negative", Pad, by(ints(-1), ints(1)), Shape{3}, []Operand{f(3), s}, "cannot have -1 elements before", ErrShape},
		{"pad between negative", Pad, by(ints(0), ints(0)), Shape{3}, []Operand{f(3), s}, "-1 between", ErrShape},
		{"pad huge step", Pad, by(ints(0), ints(big)), Shape{3}, []Operand{f(3), s}, "does not fit", ErrShape},
		{"pad rank", Pad, by(ints(0), ints(1)), Shape{3}, []Operand{f(3, 1), s}, "for 2 dims", ErrShape},
		{"pad by a tensor", Pad, by(ints(0), ints(1)), Shape{3}, []Operand{f(3), f()}, "fill is a scalar", ErrShape},
		{"pad of a scalar", Pad, by(nil, nil), Shape{}, []Operand{s, s}, "operand 0 of pad is a scalar", ErrShape},
		{"concat", Concat, axis(1), nil, []Operand{f(2, 3), f(2, 0)}, "float32(2,3)", nil},
		{"concat more", Concat, axis(0), nil, []Operand{f(2, 3), f(4, 3)}, "float32(6,3)", nil},
		{"concat dims", Concat, axis(0), nil, []Operand{f(2, 3), f(2, 4)}, "(2,3) and (2,4) along axis 0: the other dims differ", ErrShape},
		{"concat ranks", Concat, axis(0), nil, []Operand{f(2), f(2, 1)}, "differ", ErrShape},
		{"concat dtypes", Concat, axis(0), nil, []Operand{f(2), i(2)}, "use Cast", ErrDType},
		{"concat 0-d", Concat, axis(0), nil, []Operand{f(), f()}, "bad axes", ErrShape},
		{"concat overflow", Concat, axis(0), nil, []Operand{f(big/8-1, 1), f(big/8-1, 1)}, "more elements", ErrShape},
		{"assign", Assign, by(ints(1, 2), ints(1, -2)), nil, []Operand{f(3, 3), f(2, 2)}, "float32(3,3)", nil},
		{"assign past", Assign, by(ints(2), ints(1)), nil, []Operand{f(3), f(2)}, "assign of (3): dim 0 does not have 2 elements from 2 on with step 1", ErrShape},
		{"assign rank", Assign, by(ints(0), ints(1)), nil, []Operand{f(3), f()}, "the ranks differ", ErrShape},
		{"assign without", Assign, nil, nil, []Operand{f(3), f(3)}, "needs start", ErrShape},
		{"gather", Gather, axis(1), nil, []Operand{f(2, 3), i(2, 5)}, "float32(2,5)", nil},
		{"gather rows", Gather, axis(0), nil, []Operand{m(9, 4), i(5, 1)}, "bool(5,4)", nil},
		{"gather of a broadcast", Gather, axis(0), nil, []Operand{f(9, 1), i(5, 4)}, "float32(5,4)", nil},
		{"gather does not broadcast", Gather, axis(0), nil, []Operand{f(9, 3), i(5, 4)}, "dim 1 does not broadcast", ErrShape},
		{"gather ranks", Gather, axis(0), nil, []Operand{f(9, 3), i(5)}, "the ranks differ", ErrShape},
		{"gather by floats", Gather, axis(0), nil, []Operand{f(9), f(5)}, "gather by float32; an index is int32 or int64", ErrDType},
		{"gather by a scalar", Gather, axis(0), nil, []Operand{f(9), s}, "operand 1 of gather is a scalar", ErrShape},
		{"gather mode", Gather, &Attr{Axes: []int{0}, Mode: 9}, nil, []Operand{f(9), i(2)}, "mode 9", nil},
		{"clamp to nothing", Gather, &Attr{Axes: []int{0}, Mode: IndexClamp}, nil, []Operand{f(0), i(2)}, "axis 0, which is empty", ErrShape},
		{"clamp nothing", Gather, &Attr{Axes: []int{0}, Mode: IndexClamp}, nil, []Operand{f(0), i(0)}, "float32(0)", nil},
		{"scatter", Scatter, axis(0), nil, []Operand{f(9, 4), i(3, 4), f(3, 4)}, "float32(9,4)", nil},
		{"scatter bools", Scatter, axis(0), nil, []Operand{m(9), i(3), m(3)}, "bool(9)", nil},
		{"scatter adds bools", Scatter, &Attr{Axes: []int{0}, Combine: CombineAdd}, nil, []Operand{m(9), i(3), m(3)}, "scatter by add does not take bool", ErrDType},
		{"scatter dims", Scatter, axis(0), nil, []Operand{f(9, 4), i(3, 3), f(3, 3)}, "the other dims differ", ErrShape},
		{"scatter shapes", Scatter, axis(0), nil, []Operand{f(9, 4), i(3, 4), f(2, 4)}, "the shapes differ", ErrShape},
		{"scatter dtypes", Scatter, axis(0), nil, []Operand{f(9), i(3), i(3)}, "scatter of int32 into float32; use Cast", ErrDType},
		{"scatter by floats", Scatter, axis(0), nil, []Operand{f(9), f(3), f(3)}, "an index is", ErrDType},
		{"scatter combine", Scatter, &Attr{Axes: []int{0}, Combine: 77}, nil, []Operand{f(9), i(3), f(3)}, "combine 77", nil},
		{"scatter of a scalar", Scatter, axis(0), nil, []Operand{f(9), i(3), s}, "operand 2 of scatter is a scalar", ErrShape},
	} {
		t.Run(c.name, func(t *testing.T) { inferCase(t, c.op, c.attr, 0, c.shape, c.args, c.want, c.err) })
	}
}

func TestCheckRowInstr(t *testing.T) {
	for _, c := range []struct {
		in   Instr
		args []DType
		ok   bool
	}{
		{Instr{Op: Sum, DT: Float32}, []DType{Float32}, true},
		{Instr{Op: Sum, DT: Float64}, []DType{Float32}, false},
		{Instr{Op: Sum, DT: Bool}, []DType{Bool}, false},
		{Instr{Op: ArgMax, DT: Int32}, []DType{Float32}, true},
		{Instr{Op: ArgMax, DT: Float32}, []DType{Float32}, false},
		{Instr{Op: Dot, DT: Float32}, []DType{Float32, Float32}, true},
		{Instr{Op: Dot, DT: Float32}, []DType{Float32, Float64}, false},
		{Instr{Op: Dot, DT: Float32}, []DType{Float32}, false},
		{Instr{Op: CumMin, DT: Int8}, []DType{Int8}, true},
		{Instr{Op: ArgSort, DT: Int64}, []DType{Uint8}, true},
		{Instr{Op: Pad, DT: Float32}, []DType{Float32, Float32}, false},
		{Instr{Op: Load, DT: Float32}, nil, true},
		{Instr{Op: Load, DT: Float32}, []DType{Bool}, true},
		{Instr{Op: Load, DT: Float32}, []DType{Int32}, false},
		{Instr{Op: Load, DT: Float32}, []DType{Bool, Bool}, false},
		{Instr{Op: LoadAt, DT: Float32, Imm: uint64(IndexDrop) << 32}, []DType{Int64}, true},
		{Instr{Op: LoadAt, DT: Bool}, []DType{Int32, Bool}, true},
		{Instr{Op: LoadAt, DT: Float32}, []DType{Int32, Int32}, false},
		{Instr{Op: LoadAt, DT: Float32}, []DType{Float32}, false},
		{Instr{Op: LoadAt, DT: Float32}, nil, false},
		{Instr{Op: LoadAt, DT: Float32, Imm: uint64(NumIndexModes) << 32}, []DType{Int32}, false},
	} {
		if err := CheckInstr(c.in, c.args); (err == nil) != c.ok {
			t.Errorf("%v.%v of %v: %v", c.in.Op, c.in.DT, c.args, err)
		}
	}
}
