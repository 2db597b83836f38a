package apitest

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
)

// BenchmarkShortRows times a million elements in short rows, beside adding them to themselves,
// which moves as many bytes.
func BenchmarkShortRows(b *testing.B) {
	dev, err := millrace.Open("cpu:compile=wait,tune=off")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, n := range []int{3, 10, 33} {
		x := millrace.NormalOn(dev, millrace.Float32, 1, 1<<20/n, n)
		row := millrace.NormalOn(dev, millrace.Float32, 2, n)
		column := millrace.NormalOn(dev, millrace.Float32, 3, 1<<20/n, 1)
		if err := dev.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name string
			f    func() *millrace.Tensor
		}{
			{"x+x", func() *millrace.Tensor { return x.Add(x) }},
			{"x-row", func() *millrace.Tensor { return x.Sub(row) }},
			{"x*column", func() *millrace.Tensor { return x.Mul(column) }},
			{"sum", func() *millrace.Tensor { return x.Sum(-1) }},
			{"argmax", func() *millrace.Tensor { return x.ArgMax(-1) }},
			{"cumsum", func() *millrace.Tensor { return x.CumSum(-1) }},
			{"softmax", func() *millrace.Tensor { return x.Softmax(-1) }},
			{"layernorm", func() *millrace.Tensor { return x.LayerNorm(row, row, 1e-5, -1) }},
		} {
			benchTensor(b, dev, fmt.Sprintf("%s/%d", c.name, n), c.f)
		}
	}
}
