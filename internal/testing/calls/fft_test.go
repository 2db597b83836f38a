package calls_test

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// lineOf computes the transform of a line in float64, term by term.
func lineOf(x []complex128, sign float64) []complex128 {
	n := len(x)
	roots := make([]complex128, n)
	for k := range roots {
		roots[k] = cmplx.Rect(1, sign*2*math.Pi*float64(k)/float64(n))
	}
	y := make([]complex128, n)
	for k := range y {
		for j, v := range x {
			y[k] += v * roots[j*k%n]
		}
	}
	return y
}

// TestFFTOfPrimes checks lines whose lengths have large prime factors, which are convolutions of
// one or several steps: forward, inverse and for real numbers, within the documented bound.
func TestFFTOfPrimes(t *testing.T) {
	dev, err := millrace.Open("cpu:cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	rng := rand.New(rand.NewPCG(4, 0))
	for _, n := range []int{131, 149, 263, 2 * 251, 1021, 2053, 3 * 1367} {
		for range 2 { // the first time makes the tables, the second time finds them
			const rows = 2
			re, im := make([]float32, rows*n), make([]float32, rows*n)
			for i := range re {
				re[i], im[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
			}
			a, b := millrace.FromSliceOn(dev, re, rows, n), millrace.FromSliceOn(dev, im, rows, n)
			check := func(name string, x, y *millrace.Tensor, real bool, sign, scale float64, keep int) {
				u, err := millrace.Values[float32](x)
				if err != nil {
					t.Fatal(err)
				}
				v, err := millrace.Values[float32](y)
				if err != nil {
					t.Fatal(err)
				}
				for row := range rows {
					in := make([]complex128, n)
					for j := range in {
						in[j] = complex(float64(re[row*n+j]), float64(im[row*n+j]))
						if real {
							in[j] = complex(float64(re[row*n+j]), 0)
						}
					}
					off, all := 0.0, 0.0
					for k, w := range lineOf(in, sign)[:keep] {
						w *= complex(scale, 0)
						got := complex(float64(u[row*keep+k]), float64(v[row*keep+k]))
						off += math.Pow(cmplx.Abs(got-w), 2)
						all += math.Pow(cmplx.Abs(w), 2)
					}
					bound := 1.5 * 0x1p-23 * (1 + math.Log2(float64(n)))
					if e := math.Sqrt(off / all); !(e <= bound) {
						t.Errorf("%s of %d, row %d: %.3g off, %.3g is allowed", name, n, row, e, bound)
					}
				}
			}
			x, y := millrace.FFT(a, b, 1)
			check("fft", x, y, false, -1, 1, n)
			x, y = millrace.IFFT(a, b, 1)
			check("ifft", x, y, false, 1, 1/float64(n), n)
			x, y = millrace.RFFT(a, 1)
			check("rfft", x, y, true, -1, 1, n/2+1)
			back := millrace.IRFFT(x, y, n, 1)
			v, err := millrace.Values[float32](back)
			if err != nil {
				t.Fatal(err)
			}
			for i := range v {
				if math.Abs(float64(v[i]-re[i])) > 1e-5 {
					t.Fatalf("irfft of %d: element %d is %v, not %v", n, i, v[i], re[i])
				}
			}
		}
	}
}

// BenchmarkFFT transforms a line of complex numbers whose length is a power of two, has small
// factors, or is prime.
func BenchmarkFFT(b *testing.B) {
	for _, n := range []int{1 << 20, 1_000_000, 999_983} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dev, err := millrace.Open("cpu")
			if err != nil {
				b.Fatal(err)
			}
			defer dev.Close()
			x, y := millrace.NormalOn(dev, millrace.Float32, 1, n), millrace.NormalOn(dev, millrace.Float32, 2, n)
			for _, t := range []*millrace.Tensor{x, y} {
				if err := t.Eval(); err != nil {
					b.Fatal(err)
				}
			}
			run := func() {
				re, im := millrace.FFT(x, y, 0)
				if err := dev.Sync(context.Background()); err != nil {
					b.Fatal(err)
				}
				re.Release()
				im.Release()
			}
			for range 10 {
				run()
			}
			if err := dev.Wait(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
		})
	}
}
