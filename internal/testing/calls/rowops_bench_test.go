package calls_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// BenchmarkAlong times ops that work along one axis in their own order: positions, scans, sorts
// and scatters. With MILLRACE_COMPILE=native they run by machine code made in the process, with
// =c by code from C compilers.
func BenchmarkAlong(b *testing.B) {
	d, err := millrace.Open("cpu:explore=wait,cache=off")
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	floats := func(shape ...int) *millrace.Tensor {
		v := make([]float32, shape[0]*shape[1])
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return millrace.FromSliceOn(d, v, shape...)
	}
	places := make([]int64, 8192)
	for i := range places {
		places[i] = rng.Int64N(8000)
	}
	x, table, updates, indices := floats(1024, 2048), floats(8000, 256), floats(8192, 256), millrace.FromSliceOn(d, places, len(places))
	for _, c := range []struct {
		name string
		f    func() *millrace.Tensor
	}{
		{"argmax/last", func() *millrace.Tensor { return x.ArgMax(1) }},
		{"argmax/first", func() *millrace.Tensor { return x.ArgMax(0) }},
		{"cumsum/last", func() *millrace.Tensor { return x.CumSum(1) }},
		{"cumsum/first", func() *millrace.Tensor { return x.CumSum(0) }},
		{"cummax/last", func() *millrace.Tensor { return x.CumMax(1) }},
		{"sort/last", func() *millrace.Tensor { return x.Sort(1) }},
		{"argsort/last", func() *millrace.Tensor { return x.ArgSort(1) }},
		{"indexadd", func() *millrace.Tensor { return table.IndexAdd(indices, updates, 0) }},
		{"take", func() *millrace.Tensor { return table.Take(indices, 0) }},
	} {
		run := func() {
			y := c.f()
			if err := d.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
			y.Release()
		}
		b.Run(c.name, func(b *testing.B) {
			for range 4 {
				run()
			}
			if err := d.Wait(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				run()
			}
		})
	}
}
