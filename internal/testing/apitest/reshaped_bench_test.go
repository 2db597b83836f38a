package apitest

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// BenchmarkReshaped times reads of an earlier segment's result that is a reshape of a permuted
// tensor, such as rejoined heads of attention, beside adding 1 to as many contiguous elements.
func BenchmarkReshaped(b *testing.B) {
	dev, err := millrace.Open("cpu:compile=wait,tune=off")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	uniform := func(shape ...int) *millrace.Tensor {
		x := millrace.UniformOn(dev, millrace.Float32, 1, shape...)
		if err := dev.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		return x
	}
	for _, c := range []struct {
		name         string
		dims, to, as []int
	}{
		{"heads", []int{4, 4, 256, 32}, []int{0, 2, 1, 3}, []int{1024, 128}},
		{"columns", []int{4, 4, 32, 256}, []int{0, 3, 1, 2}, []int{1024, 128}},
		{"3xM", []int{3, 1000000}, []int{1, 0}, []int{3000000}},
		{"Mx3", []int{1000000, 3}, []int{1, 0}, []int{3000000}},
		{"16xM", []int{16, 200000}, []int{1, 0}, []int{3200000}},
	} {
		x, o := uniform(c.dims...), uniform(c.as...)
		y := x.Permute(c.to...).Reshape(c.as...)
		if err := y.Eval(); err != nil {
			b.Fatal(err)
		}
		benchTensor(b, dev, c.name+"/copy", func() *millrace.Tensor { return x.AddScalar(1) })
		benchTensor(b, dev, c.name+"/exp", func() *millrace.Tensor { return y.Exp() })
		benchTensor(b, dev, c.name+"/add", func() *millrace.Tensor { return y.Add(o) })
		benchTensor(b, dev, c.name+"/sum", func() *millrace.Tensor { return y.Sum(-1) })
		if len(c.as) == 2 {
			w := uniform(c.as[1], 128)
			benchTensor(b, dev, c.name+"/matmul", func() *millrace.Tensor { return y.MatMul(w) })
			w.Release()
		}
		for _, t := range []*millrace.Tensor{x, y, o} {
			t.Release()
		}
	}
}
