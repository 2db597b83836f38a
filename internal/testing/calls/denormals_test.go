package calls_test

import (
	"fmt"
	"math"
	"sort"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestFlushDenormals shows what the option changes.
func TestFlushDenormals(t *testing.T) {
	for spec, want := range map[string][]float32{
		"cpu:cache=off":                 {1e-40, 1e-40, -5e-41, 1e-40, 2e-40},
		"cpu:cache=off,denormals=flush": {1e-40, 0, float32(math.Copysign(0, -1)), 0, 0},
	} {
		d, err := millrace.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		x := millrace.FromSliceOn(d, []float32{1e-40, 2e-38}, 2)
		small, normal := x.Slice(millrace.R(0, 1)), x.Slice(millrace.R(1, 2))
		got := []*millrace.Tensor{
			small.Reshape(1),        // moved
			normal.MulScalar(0.005), // a result
			small.MulScalar(-0.5),   // an operand
			small.MatMul(millrace.FromSliceOn(d, []float32{1}, 1)), // a product
			small.Add(small).Max(0),                                // a row
		}
		for i, g := range got {
			v, err := millrace.Values[float32](g)
			if err != nil {
				t.Fatal(err)
			}
			if math.Float32bits(v[0])&(1<<31) != math.Float32bits(want[i])&(1<<31) || math.Abs(float64(v[0]-want[i])) > 1e-44 {
				t.Errorf("%s: result %d is %g, want %g", spec, i, v[0], want[i])
			}
		}
	}
}

// BenchmarkDenormals times a product of matrices and an elementwise chain, on ordinary and on
// small numbers, on devices that keep denormals and on devices that flush them, in turns. The
// metrics are the least times, divided by the least time for ordinary numbers with denormals
// kept.
func BenchmarkDenormals(b *testing.B) {
	const n = 1024
	for _, c := range []struct {
		name string
		run  func(x, y *millrace.Tensor) *millrace.Tensor
	}{
		{"matmul", func(x, y *millrace.Tensor) *millrace.Tensor { return x.MatMul(y) }},
		{"chain", func(x, y *millrace.Tensor) *millrace.Tensor {
			for range 4 {
				x = x.Mul(y).Tanh().Mul(x.Neg().Exp())
			}
			return x
		}},
		{"mul", func(x, y *millrace.Tensor) *millrace.Tensor { return x.Mul(y) }},
		{"relu", func(x, y *millrace.Tensor) *millrace.Tensor { return x.Relu().Add(y) }},
		{"softmax", func(x, y *millrace.Tensor) *millrace.Tensor { return x.Softmax(-1).Mul(y) }},
		{"sum", func(x, y *millrace.Tensor) *millrace.Tensor { return x.Sum(-1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			type variant struct {
				name  string
				x, y  *millrace.Tensor
				times []float64
			}
			var variants []*variant
			for _, mode := range []string{"keep", "flush"} {
				d, err := millrace.Open("cpu:tier=1,threads=1,cache=off,denormals=" + mode)
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				for name, scale := range map[string]float32{"normal": 1, "tiny": 1e-21, "denormal": 1e-40} {
					x, y := make([]float32, n*n), make([]float32, n*n)
					for i := range x {
						x[i], y[i] = (0.3+float32(i%997)/1500)*scale, 0.5+float32(i%1009)/2000
						if name == "tiny" { // their products are small, too
							y[i] *= scale
						}
					}
					variants = append(variants, &variant{name: mode + "-" + name, x: millrace.FromSliceOn(d, x, n, n), y: millrace.FromSliceOn(d, y, n, n)})
				}
			}
			sort.Slice(variants, func(i, j int) bool { return variants[i].name < variants[j].name })
			once := func(v *variant) float64 {
				start := time.Now()
				r := c.run(v.x, v.y)
				if err := r.Eval(); err != nil {
					b.Fatal(err)
				}
				r.Release()
				return time.Since(start).Seconds()
			}
			for _, v := range variants {
				once(v)
				once(v)
			}
			for range max(b.N, 5) {
				for _, v := range variants {
					v.times = append(v.times, once(v))
				}
			}
			base := 0.0
			for _, v := range variants {
				sort.Float64s(v.times)
				if v.name == "keep-normal" {
					base = v.times[0]
				}
			}
			for _, v := range variants {
				b.ReportMetric(v.times[0]/base, v.name)
			}
			b.ReportMetric(base*1e3, "ms")
		})
	}
}

func ExampleOpen_denormals() {
	d, err := millrace.Open("cpu:denormals=flush")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	x := millrace.FromSliceOn(d, []float32{1e-30, 0.5}, 2)
	v, err := millrace.Values[float32](x.Mul(x))
	fmt.Println(v, err)
	// Output: [0 0.25] <nil>
}
