package main

import (
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"sync"

	"github.com/millrace-go/millrace"
)

// An input is the tensor all variants work on: normally distributed around 0,
// wide enough to reach the flat ends of GELU.
type input struct {
	shape shape
	f32   []float32
	f64   []float64
}

func newInput(s shape, dt dtype) *input {
	in := &input{shape: s}
	n := s.len()
	r := rand.New(rand.NewPCG(1, 2))
	if dt.DType == millrace.Float64 {
		in.f64 = make([]float64, n)
		for i := range in.f64 {
			in.f64[i] = 2 * r.NormFloat64()
		}
		return in
	}
	in.f32 = make([]float32, n)
	for i := range in.f32 {
		in.f32[i] = float32(2 * r.NormFloat64())
	}
	return in
}

func (in *input) upload(d *millrace.Device) *millrace.Tensor {
	if in.f64 != nil {
		return millrace.FromSliceOn(d, in.f64, in.shape...)
	}
	return millrace.FromSliceOn(d, in.f32, in.shape...)
}

func (in *input) bytes() int { return 4*len(in.f32) + 8*len(in.f64) }

// maxError reads y and returns its largest distance from the oracle; NaN where
// one is a number and the other is not.
func (in *input) maxError(y *millrace.Tensor, oracle func(float64) float64) (float64, error) {
	if in.f64 != nil {
		got, err := millrace.Values[float64](y)
		return worst(in.f64, got, oracle), err
	}
	got, err := millrace.Values[float32](y)
	return worst(in.f32, got, oracle), err
}

func worst[T float32 | float64](x, got []T, oracle func(float64) float64) float64 {
	if len(got) != len(x) {
		return math.NaN()
	}
	parts := goruntime.GOMAXPROCS(0)
	found := make([]float64, parts)
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() {
			for i := len(x) / parts * p; i < len(x) && (i < len(x)/parts*(p+1) || p == parts-1); i++ {
				d := math.Abs(float64(got[i]) - oracle(float64(x[i])))
				if !(d <= found[p]) {
					found[p] = d // a NaN stays: no comparison with it holds
				}
			}
		})
	}
	wg.Wait()
	top := 0.0
	for _, d := range found {
		top = math.Max(top, d) // NaN wins
	}
	return top
}
