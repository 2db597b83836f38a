package gomlxbackend

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
)

// BenchmarkExecute is what a small graph costs: next to nothing is computed.
func BenchmarkExecute(b *testing.B) {
	type value = compute.Value
	f32 := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
	b16 := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.BFloat16, dims...) }
	for _, c := range []struct {
		name   string
		params []shapes.Shape
		graph  func(f compute.Function, in []value) value
	}{
		{"neg", []shapes.Shape{f32(8)}, func(f compute.Function, in []value) value { return must(f.Neg(in[0])) }},
		{"gelu", []shapes.Shape{f32(512)}, func(f compute.Function, in []value) value { return geluOf(f, in[0]) }},
		{"dot", []shapes.Shape{f32(25, 4), f32(4, 1)}, func(f compute.Function, in []value) value {
			return must(f.DotGeneral(in[0], []int{1}, nil, in[1], []int{0}, nil, compute.DotGeneralConfig{}))
		}},
		{"dot of many rows", []shapes.Shape{f32(128, 69), f32(69, 4)}, func(f compute.Function, in []value) value {
			return must(f.DotGeneral(in[0], []int{1}, nil, in[1], []int{0}, nil, compute.DotGeneralConfig{}))
		}},
		{"dense of many rows", []shapes.Shape{f32(128, 69), f32(69, 4), f32(4)}, func(f compute.Function, in []value) value {
			return must(f.FusedDense(in[0], in[1], in[2], compute.DenseConfig{}))
		}},
		{"dense of bfloat16", []shapes.Shape{b16(25, 69), b16(69, 4), b16(4)}, func(f compute.Function, in []value) value {
			return must(f.FusedDense(in[0], in[1], in[2], compute.DenseConfig{}))
		}},
		{"dense", []shapes.Shape{f32(1, 64), f32(64, 64), f32(64)}, func(f compute.Function, in []value) value {
			return must(f.FusedDense(in[0], in[1], in[2], compute.DenseConfig{}))
		}},
		{"layernorm", []shapes.Shape{f32(8, 64), f32(64), f32(64)}, func(f compute.Function, in []value) value {
			return must(f.FusedLayerNorm(in[0], []int{1}, 1e-5, in[1], in[2]))
		}},
		{"nf4", []shapes.Shape{f32(1, 64), shapes.Make(dtypes.Uint8, 64, 64), f32(64, 1), f32(64)}, func(f compute.Function, in []value) value {
			return must(f.FusedQuantizedDense(in[0], in[1], in[3],
				&compute.Quantization{Scheme: compute.QuantNF4, Scale: in[2], BlockAxis: 1, BlockSize: 64}, compute.ActivationNone))
		}},
		{"softmax", []shapes.Shape{f32(8, 64)}, func(f compute.Function, in []value) value { return must(f.FusedSoftmax(in[0], 1)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			backend := must(New("cpu,cache=off,compile=wait")).(*Backend)
			defer backend.Finalize()
			bd := backend.Builder(c.name)
			f := bd.Main()
			var in []value
			var bufs []compute.Buffer
			for _, s := range c.params {
				flat := any(make([]float32, s.Size()))
				switch s.DType {
				case dtypes.Uint8:
					flat = make([]uint8, s.Size())
				case dtypes.BFloat16:
					flat = make([]bfloat16.BFloat16, s.Size())
				}
				in = append(in, must(f.Parameter("x", s, nil)))
				bufs = append(bufs, must(backend.BufferFromFlatData(0, flat, s)))
			}
			if err := f.Return([]value{c.graph(f, in)}, nil); err != nil {
				b.Fatal(err)
			}
			e := must(bd.Compile())
			run := func() {
				out, err := e.Execute(bufs, nil, 0)
				if err != nil {
					b.Fatal(err)
				}
				for _, buf := range out {
					if err := buf.Finalize(); err != nil {
						b.Fatal(err)
					}
				}
			}
			for range 2 {
				for range 20 {
					run()
				}
				if err := backend.Device().Wait(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// BenchmarkShared feeds a graph and looks at its result: by copies, as GoMLX's
// tensors do where buffers are not shared, and by the buffers' own memory.
func BenchmarkShared(b *testing.B) {
	for _, n := range []int{8, 1 << 12, 1 << 20} {
		backend := must(New("cpu,cache=off,compile=wait")).(*Backend)
		s := shapes.Make(dtypes.Float32, n)
		e := compile(backend, n, 1, func(f compute.Function, in []compute.Value) []compute.Value {
			return []compute.Value{must(f.Neg(in[0]))}
		})
		source := make([]float32, n)
		run := func(in compute.Buffer) compute.Buffer { return must(e.Execute([]compute.Buffer{in}, nil, 0))[0] }
		finalize := func(b *testing.B, buf compute.Buffer) {
			if err := buf.Finalize(); err != nil {
				b.Fatal(err)
			}
		}
		for range 20 {
			finalize(b, run(must(backend.BufferFromFlatData(0, source, s))))
		}
		b.Run(fmt.Sprint("copies/", n), func(b *testing.B) {
			for b.Loop() {
				in := must(backend.BufferFromFlatData(0, source, s))
				out := run(in)
				if err := out.ToFlatData(make([]float32, n)); err != nil {
					b.Fatal(err)
				}
				finalize(b, in)
				finalize(b, out)
			}
		})
		b.Run(fmt.Sprint("data/", n), func(b *testing.B) {
			in, flat, err := backend.NewSharedBuffer(0, s)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				copy(flat.([]float32), source)
				out := run(in)
				must(out.Data())
				finalize(b, out)
			}
		})
		// The program writes its elements where they are computed with, and the
		// result comes to lie there: no copies at all.
		b.Run(fmt.Sprint("donated/", n), func(b *testing.B) {
			in, _, err := backend.NewSharedBuffer(0, s)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				must(in.Data()).([]float32)[0]++
				in = must(e.Execute([]compute.Buffer{in}, []bool{true}, 0))[0]
			}
		})
		backend.Finalize()
	}
}

// BenchmarkSizes is an Execute of a layer of a transformer at a size that was not there
// for a while: with what it recorded at another, and with a graph made for it.
func BenchmarkSizes(b *testing.B) {
	for _, way := range []string{"one recording", "a graph each", "one size"} {
		b.Run(way, func(b *testing.B) {
			backend := must(New("cpu,cache=off,threads=1,tune=off,explore=wait,compile=wait")).(*Backend)
			defer backend.Finalize()
			e := encoder(backend, axes("batch", "seq", 16)).(*TemplateExecutable)
			if way == "a graph each" {
				e.general = nil
			}
			w := ramp(backend, 16, 16)
			var in []compute.Buffer
			for batch := range 12 {
				for seq := range 12 {
					if way == "one size" {
						batch, seq = 5, 5
					}
					in = append(in, ramp(backend, 2+batch, 2+seq, 16))
				}
			}
			run := func(i int) {
				for _, out := range must(e.Execute([]compute.Buffer{in[i%len(in)], w}, nil, 0)) {
					_ = out.Finalize()
				}
			}
			for i := range in {
				run(i)
			}
			b.ResetTimer()
			for i := range b.N {
				run(i)
			}
		})
	}
}
