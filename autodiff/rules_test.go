package autodiff_test

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

func TestRules(t *testing.T) {
	for _, c := range optable.Grads() {
		t.Run(c.Name, func(t *testing.T) { check(t, c.F, c.Ops...) })
	}
}

// TestCast: the derivative of a cast has the operand's dtype, whatever the result's dtype is. Tests
// by differences cannot show that, because they use float64 only.
func TestCast(t *testing.T) {
	floats := []millrace.DType{millrace.Float16, millrace.BFloat16, millrace.Float32, millrace.Float64}
	for _, from := range floats {
		for _, to := range floats {
			x := autodiff.Watch(millrace.FromSlice([]float64{1, -3, 0.5}).Cast(from))
			g, err := autodiff.Grad(x.Cast(to).Square().Sum(), x)
			if err != nil {
				t.Fatal(err)
			}
			if got := values(t, g[0].Cast(millrace.Float64)); g[0].DType() != from || !slices.Equal(got, []float64{2, -6, 1}) {
				t.Errorf("%v to %v: %v of %v", from, to, got, g[0].DType())
			}
		}
	}
}
