package gomlxbackend

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// BenchmarkExecute is what a small graph costs: next to nothing is computed.
func BenchmarkExecute(b *testing.B) {
	type value = compute.Value
	for _, c := range []struct {
		name   string
		params [][]int
		graph  func(f compute.Function, in []value) value
	}{
		{"neg", [][]int{{8}}, func(f compute.Function, in []value) value { return must(f.Neg(in[0])) }},
		{"gelu", [][]int{{512}}, func(f compute.Function, in []value) value { return must(f.FusedGelu(in[0], true)) }},
		{"dot", [][]int{{25, 4}, {4, 1}}, func(f compute.Function, in []value) value {
			return must(f.DotGeneral(in[0], []int{1}, nil, in[1], []int{0}, nil, compute.DotGeneralConfig{}))
		}},
		{"dense", [][]int{{1, 64}, {64, 64}, {64}}, func(f compute.Function, in []value) value {
			return must(f.FusedDense(in[0], in[1], in[2], compute.DenseConfig{}))
		}},
		{"layernorm", [][]int{{8, 64}, {64}, {64}}, func(f compute.Function, in []value) value {
			return must(f.FusedLayerNorm(in[0], []int{1}, 1e-5, in[1], in[2]))
		}},
		{"softmax", [][]int{{8, 64}}, func(f compute.Function, in []value) value { return must(f.FusedSoftmax(in[0], 1)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			backend := must(New("cpu,cache=off")).(*Backend)
			defer backend.Finalize()
			bd := backend.Builder(c.name)
			f := bd.Main()
			var in []value
			var bufs []compute.Buffer
			for _, dims := range c.params {
				s := shapes.Make(dtypes.Float32, dims...)
				in = append(in, must(f.Parameter("x", s, nil)))
				bufs = append(bufs, must(backend.BufferFromFlatData(0, make([]float32, s.Size()), s)))
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
