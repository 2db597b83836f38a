package autodiff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	_ "github.com/millrace-go/millrace/internal/nocache"
)

type T = millrace.Tensor

// operand is an input of a case: its shape, and what its elements are like.
type operand struct {
	shape  []int
	lo, hi float64
	apart  bool // all elements differ by more than a step of the central differences
}

func (o operand) values(r *rand.Rand) []float64 {
	n := 1
	for _, d := range o.shape {
		n *= d
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = o.lo + float64((o.hi-o.lo)*r.Float64())
	}
	if o.apart {
		for i, k := range r.Perm(n) {
			v[i] = o.lo + float64((o.hi-o.lo)*(float64(k)+0.5)/float64(n))
		}
	}
	return v
}

func in(lo, hi float64, shape ...int) operand    { return operand{shape, lo, hi, false} }
func apart(lo, hi float64, shape ...int) operand { return operand{shape, lo, hi, true} }

// weigh makes one number of a result, to which every element counts another way.
func weigh(y *T) *T {
	n := y.Len()
	w := make([]float64, n)
	for i := range w {
		w[i] = math.Sin(float64(i)*1.3 + 0.7)
	}
	return y.Mul(millrace.FromSlice(w, y.Shape()...)).Sum()
}

func tensors(ops []operand, vals [][]float64) []*T {
	ts := make([]*T, len(ops))
	for i, o := range ops {
		ts[i] = millrace.FromSlice(vals[i], append([]int{}, o.shape...)...)
	}
	return ts
}

func item(t *testing.T, x *T) float64 {
	t.Helper()
	v, err := millrace.Item[float64](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func values(t *testing.T, x *T) []float64 {
	t.Helper()
	v, err := millrace.Values[float64](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// check compares derivatives of f with central differences, and the derivatives of those
// along a direction with central differences of theirs.
func check(t *testing.T, f func(in []*T) *T, second bool, ops ...operand) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(len(ops))))
	vals := make([][]float64, len(ops))
	for i, o := range ops {
		vals[i] = o.values(r)
	}
	loss := func(in []*T) *T { return weigh(f(in)) }
	_, got, err := autodiff.ValueAndGrad(loss, tensors(ops, vals)...)
	if err != nil {
		t.Fatal(err)
	}
	const h = 1e-5
	for i := range ops {
		g := values(t, got[i])
		if fmt.Sprint(got[i].Shape()) != fmt.Sprint(append([]int{}, ops[i].shape...)) {
			t.Fatalf("derivative by operand %d has shape %v, not %v", i, got[i].Shape(), ops[i].shape)
		}
		for k := range vals[i] {
			at := vals[i][k]
			vals[i][k] = at + h
			up := item(t, loss(tensors(ops, vals)))
			vals[i][k] = at - h
			down := item(t, loss(tensors(ops, vals)))
			vals[i][k] = at
			near(t, fmt.Sprintf("operand %d, element %d", i, k), g[k], (up-down)/(2*h))
		}
	}
	if !second {
		return
	}
	dir := make([][]float64, len(ops))
	for i := range ops {
		dir[i] = operand{ops[i].shape, -1, 1, false}.values(r)
	}
	hv, err := autodiff.HessianVectorProduct(loss, tensors(ops, vals), tensors(ops, dir))
	if err != nil {
		t.Fatal("second: ", err)
	}
	grads := func(sign float64) [][]float64 {
		moved := make([][]float64, len(ops))
		for i := range ops {
			moved[i] = make([]float64, len(vals[i]))
			for k := range moved[i] {
				moved[i][k] = vals[i][k] + float64(sign*h*dir[i][k])
			}
		}
		_, g, err := autodiff.ValueAndGrad(loss, tensors(ops, moved)...)
		if err != nil {
			t.Fatal(err)
		}
		out := make([][]float64, len(ops))
		for i := range ops {
			out[i] = values(t, g[i])
		}
		return out
	}
	up, down := grads(1), grads(-1)
	for i := range ops {
		for k, got := range values(t, hv[i]) {
			near(t, fmt.Sprintf("second order, operand %d, element %d", i, k), got, (up[i][k]-down[i][k])/(2*h))
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > float64(1e-6*max(1, math.Abs(want), math.Abs(got))) {
		t.Fatalf("%s: %v, by differences %v", what, got, want)
	}
}
