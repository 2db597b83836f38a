package calls_test

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// BenchmarkFirstRun times the first value of programs of many small ops on a new device without a
// cache: 40 steps on 200 elements, each of which reads the result of the step before. Figures are
// medians.
//
//	go test . -run '^$' -bench FirstRun -benchtime 10x
func BenchmarkFirstRun(b *testing.B) {
	first, second := millrace.R(0, 100), millrace.R(100, 200)
	for _, c := range []struct {
		name string
		step func(x *millrace.Tensor, e env) *millrace.Tensor
	}{
		{"concat", func(x *millrace.Tensor, e env) *millrace.Tensor {
			return millrace.Concat(0, x.Slice(millrace.R(1, 200)), x.Slice(millrace.R(0, 1))).Add(e.ones)
		}},
		{"halves", func(x *millrace.Tensor, e env) *millrace.Tensor {
			return millrace.Concat(0, x.Slice(second), x.Slice(first)).Add(x)
		}},
		{"take", func(x *millrace.Tensor, e env) *millrace.Tensor { return x.Take(e.places, 0).Mul(e.ones).Add(x) }},
		{"scatter", func(x *millrace.Tensor, e env) *millrace.Tensor {
			return x.IndexAdd(e.places, e.ones, 0).MulScalar(0.5).Add(x)
		}},
		{"where", func(x *millrace.Tensor, e env) *millrace.Tensor {
			return millrace.Where(x.GtScalar(1), x, x.MulScalar(0.5)).Add(e.ones)
		}},
		{"matmul", func(x *millrace.Tensor, e env) *millrace.Tensor { return e.square.MatMul(x).Tanh().Add(x) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []float64
			for range b.N {
				took = append(took, firstRun(b, c.step))
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric((took[(len(took)-1)/2]+took[len(took)/2])/2, "ms")
		})
	}
}

// env is what a step reads besides the result of the step before.
type env struct{ ones, square, places *millrace.Tensor }

func firstRun(b *testing.B, step func(x *millrace.Tensor, e env) *millrace.Tensor) float64 {
	d, err := millrace.Open("cpu:cache=off")
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	e := env{millrace.OnesOn(d, millrace.Float32, 200), millrace.OnesOn(d, millrace.Float32, 200, 200), millrace.FromSliceOn(d, make([]int64, 200), 200)}
	for _, t := range []*millrace.Tensor{e.ones, e.square} {
		if err := t.Eval(); err != nil {
			b.Fatal(err)
		}
	}
	x := e.ones
	start := time.Now()
	for range 40 {
		x = step(x, e)
	}
	if _, err := millrace.Values[float32](x); err != nil {
		b.Fatal(err)
	}
	return time.Since(start).Seconds() * 1e3
}
