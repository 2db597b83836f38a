package gputest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// testEngineGrads: every derivative rule gives the CPU's results on the GPU, within the tolerances
// of its functions.
func testEngineGrads(t *testing.T) {
	gpu := openEngine(t)
	cpu := openCPU(t, "compile=off")
	for _, c := range optable.Grads() {
		t.Run(c.Name, func(t *testing.T) {
			f := c.F
			if c.Name == "cast" { // to float64, which shaders lack: TestRules of autodiff takes differences in it
				f = func(in []*millrace.Tensor) *millrace.Tensor {
					return in[0].Cast(millrace.BFloat16).Cast(millrace.Float32).Square()
				}
			}
			grads := func(d *millrace.Device) (all [][]float32) {
				r := rand.New(rand.NewPCG(1, 2))
				var in []*millrace.Tensor
				for _, o := range c.Ops {
					v := make([]float32, 0, 64)
					for _, x := range o.Values(r) {
						v = append(v, float32(x))
					}
					in = append(in, millrace.FromSliceOn(d, v, o.Shape...))
				}
				_, g, err := autodiff.ValueAndGrad(func(in []*millrace.Tensor) *millrace.Tensor {
					return optable.Weigh(f(in))
				}, in...)
				if err != nil {
					t.Fatal(d.Name(), err)
				}
				for _, x := range g {
					v, err := millrace.Values[float32](x)
					if err != nil {
						t.Fatal(d.Name(), err)
					}
					all = append(all, v)
				}
				return all
			}
			want, got := grads(cpu), grads(gpu)
			for i := range want {
				for k, x := range want[i] {
					if y := got[i][k]; math.Abs(float64(y-x)) > 1e-4*math.Max(1, math.Abs(float64(x))) || y != y {
						t.Fatalf("operand %d, element %d: %v, on the CPU %v", i, k, y, x)
					}
				}
			}
		})
	}
}
