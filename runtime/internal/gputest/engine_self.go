package gputest

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
)

// testSelf: some drivers simplify x/x to 1, x - x to 0 and x == x to true, and replace selections
// after comparisons by minima, which lose NaN.
func testSelf(t *testing.T) {
	d := openEngine(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	data := []float32{0, float32(math.Copysign(0, -1)), 3, -2.5, inf, -inf, nan, -nan, 1e-30, 7}
	x := millrace.FromSliceOn(d, data)
	for name, c := range map[string]struct {
		got  *millrace.Tensor
		want func(x float64) float64
	}{
		"x/x":      {x.Div(x), func(x float64) float64 { return x / x }},
		"x-x":      {x.Sub(x), func(x float64) float64 { return x - x }},
		"x rem x":  {x.Rem(x), func(x float64) float64 { return math.Mod(x, x) + 0*x }},
		"relu":     {x.Relu(), func(x float64) float64 { return math.Max(x, 0) }},
		"tanh":     {x.Tanh(), math.Tanh},
		"chosen":   {millrace.Where(x.Lt(x.MulScalar(0.5)), x, x.MulScalar(0.5)), func(x float64) float64 { return min(x, x/2) }},
		"equal":    {x.Eq(x).Cast(millrace.Float32), func(x float64) float64 { return map[bool]float64{true: 1}[x == x] }},
		"not less": {x.Le(x).Cast(millrace.Float32), func(x float64) float64 { return map[bool]float64{true: 1}[x == x] }},
		"minimum":  {x.Minimum(x.Neg()), func(x float64) float64 { return math.Min(x, -x) }},
	} {
		got, err := millrace.Values[float32](c.got)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, y := range got {
			w := c.want(float64(data[i]))
			if math.IsNaN(w) != (y != y) || w == w && math.Abs(float64(y)-w) > 1e-5*math.Abs(w) && float64(y) != w {
				t.Errorf("%s of %v is %v, want %v", name, data[i], y, w)
			}
		}
	}
}
