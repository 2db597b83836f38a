//go:build (linux || darwin || windows) && (amd64 || arm64)

package vulkan

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/runtime/internal/gpudriver"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/gpu"
)

// counted is a device that counts the pipelines it makes.
type counted struct {
	*gpu.Device
	made *atomic.Int64
}

func (c counted) NewPipeline(source string, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	c.made.Add(1)
	return c.Device.NewPipeline(source, bindings)
}

func (c counted) NewPipelineOf(binary []byte, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	c.made.Add(1)
	return c.Device.NewPipelineOf(binary, bindings)
}

// pipelines counts those of the driver "vulkan-counted".
var pipelines atomic.Int64

func init() {
	gpudriver.Register(gpudriver.Driver{
		Name: "vulkan-counted", Dialect: spirv.Dialect, Adapters: gpu.Adapters,
		Open: func(adapter string) (gpurun.Device, error) {
			g, err := gpu.Open(adapter)
			if err != nil {
				return nil, err
			}
			return counted{g, &pipelines}, nil
		},
	})
}

// TestPasses: every pass of a program after the first explores nothing, compiles nothing and makes no
// pipeline. Later passes record commands, which makes none either.
func TestPasses(t *testing.T) {
	clean(t)
	d, err := millrace.Open("vulkan-counted:tune=off,explore=wait,cache=off")
	if err != nil {
		gputest.Missing(t, name, err)
	}
	defer d.Close()
	data := make([]float32, 48*64)
	for i := range data {
		data[i] = float32(i*7%23)/8 - 1
	}
	x := millrace.FromSliceOn(d, data, 48, 64)
	rows := millrace.FromSliceOn(d, []int32{3, 1, 4, 1, 5}, 5)
	pass := func() (all []float32) {
		t.Helper()
		centred := x.Sub(x.MeanKeep(1))
		for _, y := range []*millrace.Tensor{
			x.Gelu(),
			x.Softmax(1), x.Softmax(0),
			centred.Mul(centred.Square().MeanKeep(1).AddScalar(1e-5).Rsqrt()),
			x.MatMul(x.T()).Softmax(1).MatMul(x),
			x.Sort(1), x.CumSum(1), x.Sum(), x.Max(0),
			x.Take(rows, 0), // waits for the report of an index out of range
		} {
			v, err := millrace.Values[float32](y)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, v...)
		}
		return all
	}
	first := pass()
	before, made := d.Stats(), pipelines.Load()
	if made == 0 || before.Explorations == 0 || before.Runtime.Compiles == 0 {
		t.Fatalf("the first pass: %d pipelines, %d explorations, %d compiles", made, before.Explorations, before.Runtime.Compiles)
	}
	for n := range 4 {
		if again := pass(); !slices.Equal(again, first) {
			t.Errorf("pass %d has other results", n+2)
		}
		s := d.Stats()
		if e, c, p := s.Explorations-before.Explorations, s.Runtime.Compiles-before.Runtime.Compiles, pipelines.Load()-made; e+c+p != 0 {
			t.Errorf("pass %d: %d explorations, %d compiles, %d pipelines", n+2, e, c, p)
		}
	}
}
