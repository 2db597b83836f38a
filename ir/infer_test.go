package ir

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestInfer(t *testing.T) {
	f := func(dims ...int) Operand { return Operand{DT: Float32, Shape: dims} }
	i := func(dims ...int) Operand { return Operand{DT: Int32, Shape: dims} }
	m := func(dims ...int) Operand { return Operand{DT: Bool, Shape: dims} }
	s := Operand{Scalar: true}
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
		{"equal shapes", Add, nil, 0, nil, []Operand{f(2, 3), f(2, 3)}, "float32(2,3)", nil},
		{"row", Add, nil, 0, nil, []Operand{f(2, 3), f(3)}, "float32(2,3)", nil},
		{"outer", Add, nil, 0, nil, []Operand{f(2, 1), f(3)}, "float32(2,3)", nil},
		{"0-d", Add, nil, 0, nil, []Operand{f(), f(3)}, "float32(3)", nil},
		{"size one against empty", Add, nil, 0, nil, []Operand{f(1), f(0)}, "float32(0)", nil},
		{"scalar", Mul, nil, 0, nil, []Operand{f(4), s}, "float32(4)", nil},
		{"compare", Lt, nil, 0, nil, []Operand{i(4), s}, "bool(4)", nil},
		{"where", Where, nil, 0, nil, []Operand{m(2, 1), f(3), s}, "float32(2,3)", nil},
		{"where of scalars has no dtype", Where, nil, 0, nil, []Operand{m(2), s, s}, "does not take invalid", ErrDType},
		{"where of typed scalars", Where, nil, 0, nil, []Operand{m(2), {DT: Float32, Scalar: true}, {DT: Float32, Scalar: true}}, "float32(2)", nil},
		{"mask", Where, nil, 0, nil, []Operand{f(2), f(2), f(2)}, "needs a bool mask", ErrDType},
		{"mixed", Add, nil, 0, nil, []Operand{f(2), i(2)}, "add of float32 and int32; use Cast", ErrDType},
		{"no broadcast", Add, nil, 0, nil, []Operand{f(2, 3), f(4)}, "(2,3) and (4) do not broadcast", ErrShape},
		{"bool arithmetic", Add, nil, 0, nil, []Operand{m(2), m(2)}, "add does not take bool", ErrDType},
		{"outer overflow", Add, nil, 0, nil, []Operand{f(math.MaxInt/16, 1), f(math.MaxInt / 16)}, "more elements", ErrShape},
		{"full", Full, nil, Int64, Shape{2}, []Operand{s}, "int64(2)", nil},
		{"negative", Full, nil, Int64, Shape{-2}, []Operand{s}, "negative", ErrShape},
		{"uniform int", Uniform, nil, Int64, Shape{2}, []Operand{s}, "cannot make int64", ErrDType},
		{"reshape", Reshape, nil, 0, Shape{3, 2}, []Operand{f(2, 3)}, "float32(3,2)", nil},
		{"reshape count", Reshape, nil, 0, Shape{4}, []Operand{f(2, 3)}, "6 elements, to (4), 4 elements", ErrShape},
		{"permute", Permute, &Attr{Axes: []int{2, 0, 1}}, 0, nil, []Operand{f(2, 3, 4)}, "float32(4,2,3)", nil},
		{"permute twice", Permute, &Attr{Axes: []int{0, 0}}, 0, nil, []Operand{f(2, 3)}, "is not an order", ErrShape},
		{"slice", Slice, &Attr{Start: []int{4}, Step: []int{-2}}, 0, Shape{3}, []Operand{f(5)}, "float32(3)", nil},
		{"slice past", Slice, &Attr{Start: []int{3}, Step: []int{-2}}, 0, Shape{3}, []Operand{f(5)}, "dim 0 does not have 3 elements from 3 on with step -2", ErrShape},
		{"slice huge step", Slice, &Attr{Start: []int{0}, Step: []int{math.MaxInt / 2}}, 0, Shape{5}, []Operand{f(5)}, "dim 0", ErrShape},
		{"slice empty", Slice, &Attr{Start: []int{5}, Step: []int{1}}, 0, Shape{0}, []Operand{f(5)}, "float32(0)", nil},
		{"expand", Expand, nil, 0, Shape{2, 3}, []Operand{f(1)}, "float32(2,3)", nil},
		{"expand shrinks", Expand, nil, 0, Shape{1}, []Operand{f(3)}, "(3) does not expand to (1)", ErrShape},
		{"sum", Sum, &Attr{Axes: []int{0, 2}}, 0, nil, []Operand{f(2, 3, 4)}, "float32(3)", nil},
		{"sum keep", Sum, &Attr{Axes: []int{1}, Keep: true}, 0, nil, []Operand{f(2, 3)}, "float32(2,1)", nil},
		{"empty sum", Sum, &Attr{Axes: []int{0}}, 0, nil, []Operand{f(0, 3)}, "float32(3)", nil},
		{"empty max", Max, &Attr{Axes: []int{0}}, 0, nil, []Operand{f(0, 3)}, "max of (0,3) over axis 0, which is empty", ErrShape},
		{"max of none", Max, &Attr{Axes: []int{1}}, 0, nil, []Operand{f(0, 3)}, "float32(0)", nil},
		{"axes unsorted", Sum, &Attr{Axes: []int{1, 0}}, 0, nil, []Operand{f(2, 3)}, "bad axes", ErrShape},
	} {
		t.Run(c.name, func(t *testing.T) {
			dt, shape, err := Infer(c.op, c.attr, c.dt, c.shape, c.args...)
			if c.err != nil {
				if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("error %v, want %v with %q", err, c.err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := dt.String() + shape.String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestInferAllocs(t *testing.T) {
	x := Operand{DT: Float32, Shape: Shape{32, 16}}
	row := Operand{DT: Float32, Shape: Shape{16}}
	for name, args := range map[string][2]Operand{
		"equal": {x, x}, "row": {x, row}, "scalar": {x, {Scalar: true}},
	} {
		n := testing.AllocsPerRun(100, func() {
			if _, _, err := Infer(Add, nil, Invalid, nil, args[0], args[1]); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkInfer(b *testing.B) {
	x := Operand{DT: Float32, Shape: Shape{32, 512, 2048}}
	for b.Loop() {
		if _, _, err := Infer(Add, nil, Invalid, nil, x, x); err != nil {
			b.Fatal(err)
		}
	}
}
