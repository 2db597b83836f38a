package linalg_test

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/linalg"
)

// TestLeastSingularValue: a singular value that the dtype cannot distinguish from 0 beside the
// largest one counts as 0.
func TestLeastSingularValue(t *testing.T) {
	for _, c := range []struct {
		dt    millrace.DType
		small float64
		want  float64 // 1/small, or 0
	}{
		{millrace.Float64, 0x1p-50, 0x1p50}, {millrace.Float64, 0x1p-51, 0}, {millrace.Float64, 0x1p-30, 0x1p30},
		{millrace.Float32, 0x1p-21, 0x1p21}, {millrace.Float32, 0x1p-22, 0}, {millrace.Float32, 0x1p-30, 0},
	} {
		a := millrace.FromSlice([]float64{1, 0, 0, c.small}, 2, 2).Cast(c.dt)
		for name, x := range map[string]*T{
			"pseudoinverse": linalg.PseudoInverse(a),
			"leastsquares":  linalg.LeastSquares(a, millrace.FromSlice([]float64{1, 0, 0, 1}, 2, 2).Cast(c.dt)),
		} {
			v, err := elements(x)
			if err != nil || v[0] != 1 || v[3] != c.want {
				t.Errorf("%s of %v: %v, %v, want %v", name, c, v, err, c.want)
			}
		}
	}
}

// TestLeastOfNothing: for a matrix without rows, or of zeros only, the shortest solution is 0,
// whatever the right side.
func TestLeastOfNothing(t *testing.T) {
	nan := millrace.FromSlice([]float64{1, math.NaN(), 3}, 3)
	for name, c := range map[string]struct {
		x    *T
		want []float64
	}{
		"no rows": {linalg.LeastSquares(millrace.Zeros(millrace.Float64, 0, 2), millrace.Zeros(millrace.Float64, 0)), []float64{0, 0}},
		"zeros":   {linalg.LeastSquares(millrace.Zeros(millrace.Float64, 3, 2), nan), []float64{0, 0}},
	} {
		v, err := elements(c.x)
		if err != nil || len(v) != len(c.want) || v[0] != c.want[0] || v[1] != c.want[1] {
			t.Errorf("%s: %v, %v, want %v", name, v, err, c.want)
		}
	}
}
