package everyday

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// TestHistogramByItsEdges: bins count the elements between their edges, and the outer edges are
// those of the range. No element within the range is left out, and none beyond it counts.
func TestHistogramByItsEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 3))
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			d := open(t, spec)
			check := func(dt ir.DType, vs []float64, bins int, lo, hi float64) {
				t.Helper()
				x := holding(d, dt, vs...)
				c, e := millrace.Histogram(millrace.Int32, x, bins, lo, hi)
				counts, err := elements(c)
				edges, err2 := elements(e)
				rounded, err3 := elements(x)
				if err := errors.Join(err, err2, err3); err != nil {
					t.Error(err)
					return
				}
				if lo == 0 && hi == 0 {
					lo, hi = slices.Min(rounded), slices.Max(rounded)
				}
				if lo == hi {
					lo, hi = lo-0.5, hi+0.5
				}
				end := func(v float64) float64 { return ir.BitsFloat(e.DType(), ir.FloatBits(e.DType(), v)) }
				want := make([]float64, bins)
				for _, v := range rounded {
					if v < end(lo) || v > end(hi) {
						continue
					}
					at := bins - 1
					if v < end(hi) {
						for at = range bins {
							if edges[at] <= v && v < edges[at+1] {
								break
							}
						}
					}
					want[at]++
				}
				if edges[0] != end(lo) || edges[bins] != end(hi) || !slices.Equal(counts, want) {
					t.Errorf("%v %v: %d bins from %v to %v: %v, want %v; edges %v", dt, vs, bins, lo, hi, counts, want, edges)
				}
			}
			check(millrace.Float32, []float64{2.1499999}, 1, 0.47, 2.15)
			for _, v := range []float64{0, 1, 1e6, 1000000.125, 1e30, -1e30, 1e-30, 3e38} {
				check(millrace.Float32, []float64{v, v, v}, 4, 0, 0)
				check(millrace.Float32, []float64{v, v, v}, 3, v, v)
			}
			check(millrace.Float32, []float64{-3e38, 3e38, 0}, 5, 0, 0)
			check(millrace.Float32, []float64{1, 1, 1 + 0x1p-23}, 50, 0, 0)
			for range 60 {
				dt := []ir.DType{millrace.Float32, millrace.Float64, millrace.Float16}[rng.IntN(3)]
				lo := rng.NormFloat64()
				hi := lo + math.Abs(rng.NormFloat64())
				bins := 1 + rng.IntN(5)
				vs := []float64{lo, hi, ir.BitsFloat(millrace.Float32, ir.FloatBits(millrace.Float32, hi)), math.Nextafter(hi, lo), lo + (hi-lo)/2}
				for i := range vs {
					vs = append(vs, lo+(hi-lo)*float64(i)/float64(bins))
				}
				if d.Supports(dt) {
					check(dt, vs, bins, lo, hi)
				}
			}
		})
	}
}

// TestCountsOfEveryDType: counts are exact in every dtype that can hold them, and an error in
// others.
func TestCountsOfEveryDType(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			d := open(t, spec)
			for _, dt := range every[:len(every)-1] {
				if !d.Supports(dt) {
					continue
				}
				for _, n := range []int{0, 1, 127, 128, 129, 255, 256, 257, 2048, 2049, 2050, 5000, 40000, 65505, 70000} {
					want, held := float64(n), false
					if dt.IsFloat() {
						held = ir.BitsFloat(dt, ir.FloatBits(dt, want)) == want
					} else {
						_, hi := ends(dt)
						held = want <= hi
					}
					binned := millrace.BinCount(dt, millrace.ZerosOn(d, millrace.Int32, n), 1)
					counts, edges := millrace.Histogram(dt, millrace.ZerosOn(d, millrace.Float32, n), 1, -1, 1)
					for k, r := range []*tensor{binned, counts} {
						got, err := elements(r)
						if held && (err != nil || r.DType() != dt || got[0] != want) || !held && !errors.Is(err, millrace.ErrDType) {
							t.Errorf("%d in %v, call %d: %v, %v", n, dt, k, got, err)
						}
					}
					if !held && !errors.Is(edges.Err(), millrace.ErrDType) {
						t.Errorf("edges beside %d in %v: %v", n, dt, edges.Err())
					}
				}
				// The number of elements does not matter if each count is small.
				at := millrace.ArangeOn(d, millrace.Int32, 0, 9000, 1).RemScalar(100)
				got, err := elements(millrace.BinCount(dt, at, 100))
				if err != nil || !slices.Equal(got, slices.Repeat([]float64{90}, 100)) {
					t.Errorf("90 of each in %v: %v, %v", dt, got, err)
				}
			}
		})
	}
}
