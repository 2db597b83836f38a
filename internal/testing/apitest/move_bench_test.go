package apitest

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
)

// BenchmarkMove times ops that combine tensors, of two of 4096 by 4096 and of 256 by 256 elements,
// beside their sum, which reads as much.
func BenchmarkMove(b *testing.B) {
	for _, n := range []int{256, 4096} {
		dev, err := millrace.Open("cpu:compile=wait,tune=off")
		if err != nil {
			b.Fatal(err)
		}
		x, y := millrace.UniformOn(dev, millrace.Float32, 1, n, n), millrace.UniformOn(dev, millrace.Float32, 2, n, n)
		if err := dev.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name string
			move func() *millrace.Tensor
		}{
			{"add", func() *millrace.Tensor { return x.Add(y) }},
			{"concat0", func() *millrace.Tensor { return millrace.Concat(0, x, y) }},
			{"concat1", func() *millrace.Tensor { return millrace.Concat(1, x, y) }},
			{"pad0", func() *millrace.Tensor { return x.Pad(0, millrace.Padding{Before: 3, After: 3}, millrace.Padding{}) }},
			{"pad1", func() *millrace.Tensor { return x.Pad(0, millrace.Padding{}, millrace.Padding{Before: 3, After: 3}) }},
		} {
			benchTensor(b, dev, fmt.Sprintf("%s/%d", c.name, n), c.move)
		}
		if err := dev.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConcat concatenates many tensors, beside a copy of as many elements.
func BenchmarkConcat(b *testing.B) {
	dev, err := millrace.Open("cpu")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, c := range [][2]int{{8, 1000}, {64, 256}, {2, 4096}} {
		parts, n := c[0], c[1]
		var xs []*millrace.Tensor
		for i := range parts {
			xs = append(xs, millrace.UniformOn(dev, millrace.Float32, uint64(i), n, n))
		}
		all := millrace.UniformOn(dev, millrace.Float32, 1, parts*n, n)
		if err := dev.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
		benchTensor(b, dev, fmt.Sprintf("copy/%dx%d", parts, n), func() *millrace.Tensor { return all.Neg() })
		for axis := range 2 {
			benchTensor(b, dev, fmt.Sprintf("axis%d/%dx%d", axis, parts, n), func() *millrace.Tensor { return millrace.Concat(axis, xs...) })
		}
		for _, x := range append(xs, all) {
			x.Release()
		}
	}
}

// BenchmarkPadImages puts a border of one element around 128 images, as convolutions do.
func BenchmarkPadImages(b *testing.B) {
	dev, err := millrace.Open("cpu:compile=wait,tune=off")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, c := range [][2]int{{16, 32}, {32, 16}, {64, 8}} {
		x := millrace.UniformOn(dev, millrace.Float32, 1, 128, c[0], c[1], c[1])
		p := millrace.Padding{Before: 1, After: 1}
		benchTensor(b, dev, fmt.Sprintf("%dx%d", c[0], c[1]), func() *millrace.Tensor {
			return x.Pad(0, millrace.Padding{}, millrace.Padding{}, p, p)
		})
		x.Release()
	}
}

// benchTensor times making a tensor, except the first time, which compiles.
func benchTensor(b *testing.B, dev *millrace.Device, name string, f func() *millrace.Tensor) {
	b.Run(name, func(b *testing.B) {
		once := func() {
			r := f()
			if err := dev.Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
			r.Release()
		}
		once()
		for b.Loop() {
			once()
		}
	})
}
