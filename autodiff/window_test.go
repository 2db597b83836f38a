package autodiff_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// poolPlaces is the place of each window's extreme element, in plain Go: the first one in row-major
// order, where +0 is above -0 and NaN above all. -1 stands for padding.
func poolPlaces(x []float64, shape []int, ws []millrace.Window, least bool) (at []int) {
	first := len(shape) - len(ws)
	counts, places := slices.Clone(shape), 1
	for i, w := range ws {
		counts[first+i] = (shape[first+i]+w.Before+w.After-(w.Size-1)*w.Dilation-1)/w.Stride + 1
		places *= w.Size
	}
	above := func(v, u float64) bool {
		if math.IsNaN(v) || math.IsNaN(u) {
			return !math.IsNaN(u)
		}
		if least {
			v, u = -v, -u
		}
		return v > u || v == u && math.Signbit(u) && !math.Signbit(v)
	}
	at = make([]int, product(counts))
	for n := range at {
		at[n] = -1
		best := math.Inf(-1)
		if least {
			best = math.Inf(1)
		}
		for p := range places {
			flat, apart, inside := 0, 1, true
			window, place := n, p
			for i := len(shape) - 1; i >= 0; i-- {
				k := window % counts[i]
				window /= counts[i]
				if i >= first {
					w := ws[i-first]
					k = k*w.Stride + place%w.Size*w.Dilation - w.Before
					place /= w.Size
				}
				inside = inside && k >= 0 && k < shape[i]
				flat += k * apart
				apart *= shape[i]
			}
			if inside && above(x[flat], best) {
				best, at[n] = x[flat], flat
			}
		}
	}
	return at
}

// TestPoolGradient compares the first and second derivatives of MaxPool and similar pools with
// plain Go: one to three dimensions, windows that overlap or do not, padding, dilation, equal
// elements, zeros of both signs and NaN. All sums are exact in any order.
func TestPoolGradient(t *testing.T) {
	for k, spec := range []string{"cpu:tier=0,threads=1,explore=wait,cache=off", "cpu:cache=off"} {
		dev := open(t, spec)
		rng := rand.New(rand.NewPCG(9, uint64(k)))
		for n := range 18 {
			dims := 1 + n%3
			var ws []millrace.Window
			shape := []int{1 + rng.IntN(3)}
			for range dims {
				w := millrace.Window{Size: 1 + rng.IntN([]int{20, 20, 6}[dims-1]), Stride: 1 + rng.IntN(4), Dilation: 1 + rng.IntN(2), Before: rng.IntN(3), After: rng.IntN(3)}
				ws = append(ws, w)
				shape = append(shape, (w.Size-1)*w.Dilation+1+rng.IntN([]int{30, 15, 5}[dims-1]))
			}
			x := make([]float64, product(shape))
			for i := range x {
				x[i] = float64(rng.IntN(5) - 2)
				if x[i] == 0 && rng.IntN(2) == 0 {
					x[i] = math.Copysign(0, -1)
				}
				if rng.IntN(40) == 0 {
					x[i] = math.NaN()
				}
			}
			how, dt := []millrace.Reduction{millrace.ReduceMax, millrace.ReduceMin}[n/3%2], []millrace.DType{millrace.Float32, millrace.Float64}[n/6%2]
			at := poolPlaces(x, shape, ws, how == millrace.ReduceMin)
			d, e := make([]float64, len(at)), make([]float64, len(x))
			for i := range d {
				d[i] = float64(1 + rng.IntN(7))
			}
			for i := range e {
				e[i] = float64(rng.IntN(5) - 2)
			}
			a := autodiff.Watch(millrace.FromSliceOn(dev, x, shape...).Cast(dt))
			y := a.ReduceWindow(how, ws...)
			w := autodiff.Watch(millrace.FromSliceOn(dev, d, y.Shape()...).Cast(dt))
			g, err := autodiff.Options{Follow: true}.Grad(y.Mul(w).Sum(), a)
			if err != nil {
				t.Fatal(err)
			}
			weights := millrace.FromSliceOn(dev, e, shape...).Cast(dt)
			second, err := autodiff.Grad(g[0].Mul(weights).Sum(), w) // by d
			if err != nil {
				t.Fatal(err)
			}
			want, want2 := make([]float64, len(x)), make([]float64, len(at))
			for i, k := range at {
				if k >= 0 {
					want[k] += d[i]
					want2[i] = e[k]
				}
			}
			same := func(name string, got *T, want []float64) {
				v, err := millrace.Values[float64](got.Cast(millrace.Float64))
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if v[i] != want[i] {
						t.Fatalf("%s: %v by %+v, %v: element %d of the %s derivative is %v, not %v", spec, shape, ws, how, i, name, v[i], want[i])
					}
				}
			}
			same("first", g[0], want)
			same("second", second[0], want2)
		}
	}
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// BenchmarkPoolGradient computes maxima of windows of 64 images of 128 by 128, and their
// derivative.
func BenchmarkPoolGradient(b *testing.B) {
	dev := open(b, "cpu")
	x := autodiff.Watch(millrace.NormalOn(dev, millrace.Float32, 1, 4, 16, 128, 128))
	if err := x.Eval(); err != nil {
		b.Fatal(err)
	}
	for _, w := range []millrace.Window{{Size: 9, Stride: 3}, {Size: 3, Stride: 2, Before: 1, After: 1}, {Size: 2, Stride: 2}, {Size: 5, Stride: 1, Before: 2, After: 2}} {
		run := func() {
			y := x.MaxPool(w, w)
			loss := y.Sum()
			g, err := autodiff.Grad(loss, x)
			if err != nil {
				b.Fatal(err)
			}
			if err := dev.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
			y.Release()
			loss.Release()
			g[0].Release()
		}
		b.Run(fmt.Sprintf("%dby%d", w.Size, w.Stride), func(b *testing.B) {
			for range 20 {
				run()
			}
			if err := dev.Wait(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(x.Len()), "ns/element")
		})
	}
}
