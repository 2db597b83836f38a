package apitest

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestFloorDivBesideNumPy compares FloorDiv with exact arithmetic where NumPy's is off, because it
// divides fmod's difference: float32 near 6.8e6, and float16 by numbers, which are rounded to
// float16 first. If the exact quotient has more digits than float32, the result is the nearest
// float; that of float16 is computed in float32 and rounded once more.
func TestFloorDivBesideNumPy(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 8))
	exact := func(x, y float64, digits int) float64 {
		q := new(big.Rat).Quo(new(big.Rat).SetFloat64(x), new(big.Rat).SetFloat64(y))
		whole := new(big.Int).Div(q.Num(), q.Denom()) // Euclidean: the divisor, Denom, is positive, so it rounds down
		r := new(big.Float).SetPrec(uint(digits))
		if whole.BitLen() <= 24 {
			r.SetInt(whole)
		} else {
			r.SetRat(q)
		}
		f, _ := r.Float64()
		return f
	}
	const n = 20000
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(6.8e6 + 1e5*rng.NormFloat64())
		y[i] = float32(rng.IntN(200)+1) / float32(rng.IntN(40)+1)
	}
	got, err := millrace.Values[float32](millrace.FromSlice(x).FloorDiv(millrace.FromSlice(y)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if want := exact(float64(x[i]), float64(y[i]), 24); float64(got[i]) != want {
			t.Fatalf("FloorDiv(%v, %v) is %v, exactly %v", x[i], y[i], got[i], want)
		}
	}
	for _, by := range []float64{0.1, 0.3, 0.7, 3, 7.3, -0.3, 1000} {
		h := make([]millrace.F16, 0, n)
		for len(h) < n {
			if v := millrace.F16(rng.IntN(1 << 16)); !math.IsNaN(float64(v.Float32())) && !math.IsInf(float64(v.Float32()), 0) {
				h = append(h, v)
			}
		}
		got, err := millrace.Values[millrace.F16](millrace.FromSlice(h).FloorDivScalar(by))
		if err != nil {
			t.Fatal(err)
		}
		rounded, err := millrace.Item[millrace.F16](millrace.Full(millrace.Float16, by))
		if err != nil {
			t.Fatal(err)
		}
		for i := range h {
			want := exact(float64(h[i].Float32()), float64(rounded.Float32()), 11)
			if math.Abs(want) > 65504 {
				continue
			}
			if float64(got[i].Float32()) != want {
				t.Fatalf("FloorDivScalar of float16 %v by %v is %v, exactly %v", h[i].Float32(), rounded.Float32(), got[i].Float32(), want)
			}
		}
	}
}
