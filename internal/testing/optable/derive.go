package optable

import (
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
)

// Grad is a function of tensors that has derivatives within the operands' ranges.
type Grad struct {
	Name string
	F    func(in []*T) *T
	Ops  []Operand
}

// Point is a function that autodiff/testdata has derivatives of at singular points.
type Point struct {
	Name string
	F    func(in []*T) *T
}

// Edge is a function of one float32 tensor, and its derivative where a formula has 0/0, inf - inf
// or 0·inf, or where a square overflows or becomes 0.
type Edge struct {
	Name string
	F    func(x *T) *T
	At   []float32
	Want []float64
}

// Operand is an input of a case: its shape, and the range of its elements.
type Operand struct {
	Shape  []int
	Lo, Hi float64
	Apart  bool // all elements differ by more than a step of central differences
}

// Grads are the cases of all rows: each row's Domain, and its Grads.
func Grads() []Grad {
	var all []Grad
	for _, o := range All() {
		switch {
		case o.Domain == nil:
		case o.Unary != nil:
			all = append(all, Grad{o.word(), one(o.Unary), o.Domain})
		default:
			all = append(all, Grad{o.word(), two(o.Binary.Tensors), o.Domain})
		}
		all = append(all, o.Grads...)
	}
	return all
}

// PointNamed is the function that autodiff/testdata calls name, or nil: one of Points, or a row's
// Unary or Binary by the name of the method.
func PointNamed(name string) func(in []*T) *T {
	for _, o := range All() {
		for _, p := range o.Points {
			if p.Name == name {
				return p.F
			}
		}
		switch {
		case o.Name != "Tensor."+name:
		case o.Unary != nil:
			return one(o.Unary)
		case o.Binary.Tensors != nil:
			return two(o.Binary.Tensors)
		}
	}
	return nil
}

// Values are random elements.
func (o Operand) Values(r *rand.Rand) []float64 {
	n := 1
	for _, d := range o.Shape {
		n *= d
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = o.Lo + float64((o.Hi-o.Lo)*r.Float64())
	}
	if o.Apart {
		for i, k := range r.Perm(n) {
			v[i] = o.Lo + float64((o.Hi-o.Lo)*(float64(k)+0.5)/float64(n))
		}
	}
	return v
}

// Weigh makes one number of a result, with a different weight for each element.
func Weigh(y *T) *T {
	w := make([]float32, y.Len())
	for i := range w {
		w[i] = float32(math.Sin(float64(i)*1.3 + 0.7))
	}
	return y.Mul(millrace.FromSliceOn(y.Stream(), w, y.Shape()...).Cast(y.DType())).Sum()
}

type over = []Operand

func in(lo, hi float64, shape ...int) Operand {
	return Operand{append([]int{}, shape...), lo, hi, false}
}

func apart(lo, hi float64, shape ...int) Operand {
	return Operand{append([]int{}, shape...), lo, hi, true}
}

var (
	a34    = over{apart(-2, 2, 3, 4)}
	zero31 = in(0, 0, 3, 1)
)

func one(f func(x *T) *T) func(in []*T) *T    { return func(in []*T) *T { return f(in[0]) } }
func two(f func(x, y *T) *T) func(in []*T) *T { return func(in []*T) *T { return f(in[0], in[1]) } }

func w(size, stride, dilation, before, after int) millrace.Window {
	return millrace.Window{Size: size, Stride: stride, Dilation: dilation, Before: before, After: after}
}

// ints makes indices on x's stream.
func ints(x *T, v []int32, shape ...int) *T { return millrace.FromSliceOn(x.Stream(), v, shape...) }

// hides is a mask over rows of four: part of the first row, all of the second, nothing of the last.
func hides(x *T) *T {
	return millrace.FromSliceOn(x.Stream(), []bool{true, false, false, true, true, true, true, true, false, false, false, false}, 3, 4)
}

func onlyWhere(x *T, f func(x *T) *T) *T { return millrace.WhereScalar(x.GtScalar(0), f(x), 0) }

// entropyOf is the cross entropy of one row with target k.
func entropyOf(k int32) func(in []*T) *T {
	return one(func(x *T) *T {
		return millrace.CrossEntropy(x.Unsqueeze(0), millrace.FromSliceOn(x.Stream(), []int32{k}))
	})
}

// into scatters updates into a row's first element.
func into(how millrace.Combine, updates ...float64) func(in []*T) *T {
	return one(func(x *T) *T {
		at := millrace.FromSliceOn(x.Stream(), make([]int32, len(updates)))
		return x.Scatter(at, millrace.FromSliceOn(x.Stream(), updates).Cast(x.DType()), 0, how)
	})
}
