package autodiff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

type T = millrace.Tensor

func tensors(ops []optable.Operand, vals [][]float64) []*T {
	ts := make([]*T, len(ops))
	for i, o := range ops {
		ts[i] = millrace.FromSlice(vals[i], append([]int{}, o.Shape...)...)
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

// check compares the derivatives of f with central differences of f, and the second derivatives
// along a direction with central differences of the first ones.
func check(t *testing.T, f func(in []*T) *T, ops ...optable.Operand) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(len(ops))))
	vals := make([][]float64, len(ops))
	for i, o := range ops {
		vals[i] = o.Values(r)
	}
	loss := func(in []*T) *T { return optable.Weigh(f(in)) }
	_, got, err := autodiff.ValueAndGrad(loss, tensors(ops, vals)...)
	if err != nil {
		t.Fatal(err)
	}
	const h = 1e-5
	for i := range ops {
		g := values(t, got[i])
		if fmt.Sprint(got[i].Shape()) != fmt.Sprint(append([]int{}, ops[i].Shape...)) {
			t.Fatalf("derivative by operand %d has shape %v, not %v", i, got[i].Shape(), ops[i].Shape)
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
	dir := make([][]float64, len(ops))
	for i := range ops {
		dir[i] = optable.Operand{Shape: ops[i].Shape, Lo: -1, Hi: 1}.Values(r)
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
