package apitest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestMultinomialOfManyWeights: equal weights are equally likely: half of the drawn positions are
// odd, and half are in the upper half, also for more weights than float32 has numbers.
func TestMultinomialOfManyWeights(t *testing.T) {
	const draws = 4000
	for _, n := range []int{1 << 20, 1<<20 + 1, 1 << 25} {
		if n > 1<<24 && testing.Short() {
			continue
		}
		weights := millrace.Full(millrace.Float32, 3, n)
		for _, replace := range []bool{true, false} {
			if !replace && n > 1<<24 {
				continue // it sorts all of them
			}
			at, err := millrace.Values[int64](millrace.Multinomial(millrace.Int64, 7, weights, draws, replace))
			if err != nil {
				t.Fatal(err)
			}
			odd, high := 0, 0
			for _, i := range at {
				odd += int(i & 1)
				if i >= int64(n/2) {
					high++
				}
			}
			const off = 5 * 32 // five standard deviations: sqrt(4000)/2 = 32
			if math.Abs(float64(odd-draws/2)) > off || math.Abs(float64(high-draws/2)) > off {
				t.Errorf("%d weights, replace %v: of %d positions %d are odd and %d in the upper half", n, replace, draws, odd, high)
			}
		}
	}
}

// TestQuantileIsWithinData: a quantile is between the two elements next to its position, even if
// these are adjacent floats.
func TestQuantileIsWithinData(t *testing.T) {
	check := func(data []float32, q float64) {
		t.Helper()
		v, err := millrace.Item[float32](millrace.FromSlice(data).Quantile(q))
		if err != nil {
			t.Fatal(err)
		}
		if v < min(data[0], data[1]) || v > max(data[0], data[1]) {
			t.Errorf("Quantile(%v) of %v is %v", q, data, v)
		}
	}
	check([]float32{-0.71286124, -0.7128612}, 0.22236856212514483)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		x := (rng.Float32() - 0.5) * float32(math.Exp2(float64(rng.IntN(40)-20)))
		check([]float32{x, math.Nextafter32(x, 2*x)}, rng.Float64())
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		data []float32
		want float32
	}{{[]float32{inf, inf}, inf}, {[]float32{-inf, 1}, -inf}, {[]float32{1, inf}, inf}} {
		if v, err := millrace.Item[float32](millrace.FromSlice(c.data).Quantile(0.3)); err != nil || v != c.want {
			t.Errorf("Quantile(0.3) of %v is %v, %v", c.data, v, err)
		}
	}
}
