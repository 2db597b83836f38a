package autodiff_test

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// TestDerivativesAtEdges tests derivatives where a formula has 0/0, inf - inf or 0·inf, and where a
// square overflows or becomes 0.
func TestDerivativesAtEdges(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name string
		f    func(x *T) *T
		at   []float32
		want []float64
	}{
		{"atan2", func(x *T) *T { return x.Atan2(autodiff.Detach(x)) }, []float32{0, 1e-25, 1e20}, []float64{0, 5e24, 5e-21}},
		{"by atan2", func(x *T) *T { return autodiff.Detach(x).Atan2(x) }, []float32{0, 1e-25, 1e20}, []float64{0, -5e24, -5e-21}},
		{"asinh", (*T).Asinh, []float32{0, 1e20, -1e30, 3}, []float64{1, 1e-20, 1e-30, 1 / math.Sqrt(10)}},
		{"acosh", (*T).Acosh, []float32{1, 1e20, 3}, []float64{inf, 1e-20, 1 / math.Sqrt(8)}},
		{"atanh", (*T).Atanh, []float32{1, -1, 0}, []float64{inf, inf, 1}},
		{"asin", (*T).Asin, []float32{1, -1, 0}, []float64{inf, inf, 1}},
		{"atan", func(x *T) *T { return x.Atan().MulScalar(1e30) }, []float32{1e20, 0, -1}, []float64{1e-10, 1e30, 5e29}},
		{"norm2", func(x *T) *T { return x.Unsqueeze(-1).Norm2(-1) }, []float32{0, 1e-25, -1e20}, []float64{0, 1, -1}},
		{"std", func(x *T) *T { return x.Std(0) }, []float32{0.1, 0.1, 0.1}, []float64{0, 0, 0}},
		{"std of two", func(x *T) *T { return x.Std(0) }, []float32{1e20, -1e20}, []float64{0.5, -0.5}},
		{"gelu", (*T).Gelu, []float32{float32(inf), float32(-inf), 1e20, 0}, []float64{1, 0, 1, 0.5}},
		{"gelutanh", (*T).GeluTanh, []float32{float32(inf), float32(-inf), 1e20, -1e20, 0}, []float64{1, 0, 1, 0, 0.5}},
		{"silu", (*T).Silu, []float32{float32(inf), float32(-inf), 1e20, 0}, []float64{1, 0, 1, 0.5}},
		{"recip", func(x *T) *T { return x.Recip().MulScalar(1e-20) }, []float32{1e-20, 2}, []float64{-1e20, -2.5e-21}},
		{"square", func(x *T) *T { return x.Square().MulScalar(0.1) }, []float32{3e38, 1}, []float64{6e37, 0.2}},
		{"power", func(x *T) *T { return x.Log().ScalarPow(math.E) }, []float32{1, 2}, []float64{1, 1}},
	} {
		x := autodiff.Watch(millrace.FromSlice(c.at))
		g, err := autodiff.Grad(c.f(x).Sum(), x)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for i, v := range values(t, g[0].Cast(millrace.Float64)) {
			if want := c.want[i]; v != want && !(math.Abs(v-want) <= 1e-6*math.Abs(want)) {
				t.Errorf("%s at %v: %v, want %v", c.name, c.at[i], v, want)
			}
		}
	}
}
