package gomlxbackend

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// BenchmarkFFT is a batch of transforms, on Millrace and as a plain loop on one
// goroutine; both leave their result in memory they have.
func BenchmarkFFT(b *testing.B) {
	for _, c := range [][2]int{{64, 1024}, {64, 1000}, {16, 4096}, {64, 257}} {
		batch, n := c[0], c[1]
		x := make([]complex64, batch*n)
		for i := range x {
			x[i] = complex(float32(math.Sin(float64(i))), float32(math.Cos(float64(3*i))))
		}
		b.Run(fmt.Sprintf("%dx%d/millrace", batch, n), func(b *testing.B) {
			backend := must(New("cpu,cache=off")).(*Backend)
			defer backend.Finalize()
			bd := backend.Builder("fft")
			f := bd.Main()
			s := shapes.Make(dtypes.Complex64, batch, n)
			in := must(f.Parameter("x", s, nil))
			if err := f.Return([]compute.Value{must(f.FFT(in, compute.FFTForward, []int{n}))}, nil); err != nil {
				b.Fatal(err)
			}
			e := must(bd.Compile())
			bufs := []compute.Buffer{must(backend.BufferFromFlatData(0, x, s))}
			run := func() {
				out := must(e.Execute(bufs, nil, 0))
				if err := out[0].Finalize(); err != nil {
					b.Fatal(err)
				}
			}
			for range 3 {
				for range 20 {
					run()
				}
				if err := backend.Device().Wait(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			before, runs := backend.Device().Stats().Kernels, 0
			for b.Loop() {
				run()
				runs++
			}
			b.ReportMetric(float64(backend.Device().Stats().Kernels-before)/float64(runs), "kernels/op")
		})
		if n&(n-1) != 0 {
			continue
		}
		b.Run(fmt.Sprintf("%dx%d/loop", batch, n), func(b *testing.B) {
			y := make([]complex64, len(x))
			roots := make([]complex64, n/2)
			for k := range roots {
				roots[k] = complex64(cmplx.Rect(1, -2*math.Pi*float64(k)/float64(n)))
			}
			for b.Loop() {
				for first := 0; first < len(x); first += n {
					radix2(y[first:first+n], x[first:first+n], roots)
				}
			}
		})
	}
}

// radix2 is the textbook's transform of a power of two elements.
func radix2(y, x, roots []complex64) {
	n := len(x)
	shift := 64 - bits.Len(uint(n-1))
	for i, z := range x {
		y[bits.Reverse64(uint64(i))>>shift] = z
	}
	for half := 1; half < n; half *= 2 {
		for first := 0; first < n; first += 2 * half {
			low, high := y[first:first+half], y[first+half:first+2*half]
			for k := range low {
				z := roots[k*(n/2/half)] * high[k]
				low[k], high[k] = low[k]+z, low[k]-z
			}
		}
	}
}
