package gomlxbackend

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// How many kernels ops with what is done with them come to, which values cannot
// show. Pooling compares along one axis after another.
func TestKernels(t *testing.T) {
	image := shapes.Make(dtypes.Float32, 2, 16, 16, 8)
	pooled := shapes.Make(dtypes.Float32, 2, 8, 8, 8)
	vector := shapes.Make(dtypes.Float32, 8)
	halves := []int{1, 2, 2, 1}
	for _, c := range []struct {
		name  string
		most  int64
		in    []shapes.Shape
		build func(f compute.Function, in []compute.Value) compute.Value
	}{
		{"uniform numbers", 1, []shapes.Shape{compute.RNGStateShape}, func(f compute.Function, in []compute.Value) compute.Value {
			_, bits, err := f.RNGBitGenerator(in[0], shapes.Make(dtypes.Uint32, 1000))
			x := must(f.ConvertDType(must(bits, err), dtypes.Float32))
			return must(f.Mul(x, must(f.Constant([]float32{1.0 / (1 << 32)}))))
		}},
		{"uniform numbers of 64 bits", 1, []shapes.Shape{compute.RNGStateShape}, func(f compute.Function, in []compute.Value) compute.Value {
			_, bits, err := f.RNGBitGenerator(in[0], shapes.Make(dtypes.Uint64, 1000))
			x := must(f.ConvertDType(must(bits, err), dtypes.Float64))
			return must(f.Mul(x, must(f.Constant([]float64{0x1p-64}))))
		}},
		{"pooling", 2, []shapes.Shape{image}, func(f compute.Function, in []compute.Value) compute.Value {
			return must(f.ReduceWindow(in[0], compute.ReduceOpMax, halves, nil, nil, nil, nil))
		}},
		{"gradient of pooling", 3, []shapes.Shape{image, pooled}, func(f compute.Function, in []compute.Value) compute.Value {
			return must(f.SelectAndScatterMax(in[0], in[1], halves, nil, nil))
		}},
		{"convolution", 2, []shapes.Shape{image, shapes.Make(dtypes.Float32, 3, 3, 8, 4)}, func(f compute.Function, in []compute.Value) compute.Value {
			axes := compute.ConvolveAxesConfig{InputBatch: 0, InputChannels: 3, InputSpatial: []int{1, 2}, KernelInputChannels: 2, KernelOutputChannels: 3,
				KernelSpatial: []int{0, 1}, OutputBatch: 0, OutputChannels: 3, OutputSpatial: []int{1, 2}}
			return must(f.Tanh(must(f.ConvGeneral(in[0], in[1], axes, nil, [][2]int{{1, 1}, {1, 1}}, nil, nil, 1, 1))))
		}},
		{"batch normalisation", 1, []shapes.Shape{image, vector}, func(f compute.Function, in []compute.Value) compute.Value {
			y, _, _, err := f.BatchNormForTraining(in[0], in[1], in[1], 1e-3, 3)
			return must(y, err)
		}},
		{"bytes", 1, []shapes.Shape{image}, func(f compute.Function, in []compute.Value) compute.Value {
			return must(f.Bitcast(must(f.Bitcast(in[0], dtypes.Uint8)), dtypes.Int32))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openBackend(t, "cpu,explore=wait")
			bd := b.Builder(c.name)
			f := bd.Main()
			var params []compute.Value
			var bufs []compute.Buffer
			for i, s := range c.in {
				params = append(params, must(f.Parameter(string(rune('a'+i)), s, nil)))
				bufs = append(bufs, must(b.BufferFromFlatData(0, dtypes.MakeAnySlice(s.DType, s.Size()), s)))
			}
			if err := f.Return([]compute.Value{c.build(f, params)}, nil); err != nil {
				t.Fatal(err)
			}
			e := must(bd.Compile())
			for range 2 {
				before := b.Device().Stats()
				if _, err := e.Execute(bufs, nil, 0); err != nil {
					t.Fatal(err)
				}
				after := b.Device().Stats()
				if n := after.Kernels - before.Kernels; n == 0 || n > c.most || after.Fallbacks != before.Fallbacks {
					t.Errorf("%d kernels, want at most %d (%d fallbacks)", n, c.most, after.Fallbacks-before.Fallbacks)
				}
			}
		})
	}
}
