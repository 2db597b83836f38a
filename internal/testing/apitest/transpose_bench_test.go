package apitest

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
)

// BenchmarkTransposed times ops that read a tensor along another dim than that of its contiguous
// elements, beside adding 1 to it, which moves as many bytes.
func BenchmarkTransposed(b *testing.B) {
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
	permuted := func(x *millrace.Tensor, to ...int) func() *millrace.Tensor {
		return func() *millrace.Tensor {
			t := x.Permute(to...)
			defer t.Release()
			return t.AddScalar(1)
		}
	}
	run := func(name string, f func() *millrace.Tensor) { benchTensor(b, dev, name, f) }
	for _, n := range []int{512, 1000, 4096} {
		x := uniform(n, n)
		of := func(f func(t *millrace.Tensor) *millrace.Tensor) func() *millrace.Tensor {
			return func() *millrace.Tensor {
				t := x.T()
				defer t.Release()
				return f(t)
			}
		}
		run(fmt.Sprintf("copy/%d", n), func() *millrace.Tensor { return x.AddScalar(1) })
		run(fmt.Sprintf("T/%d", n), permuted(x, 1, 0))
		run(fmt.Sprintf("x+T/%d", n), of(func(t *millrace.Tensor) *millrace.Tensor { return x.Add(t) }))
		run(fmt.Sprintf("softmaxT/%d", n), of(func(t *millrace.Tensor) *millrace.Tensor { return t.Softmax(1) }))
		x.Release()
	}
	x := uniform(32, 512, 2048)
	run("copy/32x512x2048", func() *millrace.Tensor { return x.AddScalar(1) })
	for _, to := range [][]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		run(fmt.Sprintf("permute%v/32x512x2048", to), permuted(x, to...))
	}
	y := uniform(32, 3, 224, 224)
	run("copy/32x3x224x224", func() *millrace.Tensor { return y.AddScalar(1) })
	run("NHWC/32x3x224x224", permuted(y, 0, 2, 3, 1))
}
