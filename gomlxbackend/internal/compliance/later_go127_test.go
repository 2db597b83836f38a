//go:build go1.27 && !compute_go126

package compliance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// withSwiGLU are the activations of FusedActivation.
var withSwiGLU = append(activationTypes[:len(activationTypes):len(activationTypes)], compute.ActivationSwiGLU)

// Activations and their gradients, from the value, the operand or both as each takes
// them.
func TestActivationsAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(71, 72))
	for dt, tol := range map[dtypes.DType]float64{dtypes.Float32: 1e-5, dtypes.Float64: 1e-13, dtypes.Float16: 2e-2, dtypes.BFloat16: 8e-2} {
		for _, a := range withSwiGLU {
			cfg := compute.ActivationConfig{Type: a}
			x, d := arg{uniform(r, dt, 40), []int{5, 8}}, arg{uniform(r, dt, 40), []int{5, 8}}
			if a == compute.ActivationSwiGLU {
				d = arg{uniform(r, dt, 20), []int{5, 4}}
			}
			apply := func(f compute.Function, in []value) (value, error) { return f.FusedActivation(in[0], cfg) }
			t.Run(fmt.Sprint(a, "/", dt), func(t *testing.T) { closeTo(t, b, ref, tol, []arg{x}, apply) })
			t.Run(fmt.Sprint(a, "/", dt, "/gradient"), func(t *testing.T) {
				y, shape, err := evaluate(ref, []arg{x}, apply)
				if err != nil {
					t.Fatal(err)
				}
				given := arg{y, shape.Dimensions}
				if a != compute.ActivationSwiGLU {
					closeTo(t, b, ref, tol, []arg{given, x, d}, func(f compute.Function, in []value) (value, error) {
						return f.FusedActivationVJP(in[0], in[1], in[2], cfg)
					})
				}
				closeTo(t, b, ref, tol, []arg{x, d}, func(f compute.Function, in []value) (value, error) {
					return f.FusedActivationVJP(nil, in[0], in[1], cfg)
				})
				if !a.VJPRequiresInput() {
					closeTo(t, b, ref, tol, []arg{given, d}, func(f compute.Function, in []value) (value, error) {
						return f.FusedActivationVJP(in[0], nil, in[1], cfg)
					})
				}
			})
		}
	}
}

func TestDenseGradientsAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(73, 74))
	for dt, tol := range map[dtypes.DType]float64{dtypes.Float32: 1e-4, dtypes.Float64: 1e-12} {
		for _, a := range activationTypes {
			if a.VJPRequiresInput() {
				continue
			}
			for name, s := range map[string]struct {
				x, w, y []int
				layout  compute.DenseLayout
			}{
				"matrix":     {[]int{7, 20}, []int{20, 9}, []int{7, 9}, compute.DenseLayoutInputOutputs},
				"transposed": {[]int{7, 20}, []int{9, 20}, []int{7, 9}, compute.DenseLayoutOutputsInput},
				"batch":      {[]int{2, 3, 20}, []int{20, 9}, []int{2, 3, 9}, compute.DenseLayoutInputOutputs},
				"heads":      {[]int{2, 4, 20}, []int{20, 3, 3}, []int{2, 4, 3, 3}, compute.DenseLayoutInputOutputs},
				"headsT":     {[]int{7, 20}, []int{3, 3, 20}, []int{7, 3, 3}, compute.DenseLayoutOutputsInput},
				"vector":     {[]int{20}, []int{20, 9}, []int{9}, compute.DenseLayoutInputOutputs},
			} {
				bias := []int{9}
				if len(s.w) == 3 {
					bias = []int{3, 3}
				}
				args := []arg{{uniform(r, dt, size(s.x)), s.x}, {uniform(r, dt, 180), s.w}, {uniform(r, dt, size(s.y)), s.y}, {uniform(r, dt, 9), bias}}
				// All gradients one after another: the Go backend panics where one is not used.
				gradients := func(f compute.Function, in []value) (value, error) {
					var bias value
					if len(in) > 3 {
						bias = in[3]
					}
					cfg := denseConfig(a, s.layout)
					y, err := f.FusedDense(in[0], in[1], bias, cfg)
					if err != nil {
						return nil, err
					}
					dx, dw, db, err := f.FusedDenseVJP(in[0], in[1], bias, y, in[2], cfg)
					if err != nil || (db == nil) != (bias == nil) {
						return nil, fmt.Errorf("the bias %v has the gradient %v: %v", bias, db, err)
					}
					list := []value{must(f.Reshape(dx, size(s.x))), must(f.Reshape(dw, 180))}
					if db != nil {
						list = append(list, must(f.Reshape(db, 9)))
					}
					return f.Concatenate(0, list...)
				}
				t.Run(fmt.Sprint(dt, "/", a, "/", name), func(t *testing.T) {
					closeTo(t, b, ref, tol, args, gradients)
					closeTo(t, b, ref, tol, args[:3], gradients)
				})
			}
		}
	}
}

func TestCumSumAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(75, 76))
	var n tally
	for _, dt := range all {
		for _, dims := range [][]int{{}, {1}, {7}, {3, 5}, {2, 3, 4}, {3, 0, 2}, {300}} {
			for axis := range len(dims) + 1 {
				for _, o := range []compute.CumSumOptions{{}, {Exclusive: true}, {Reverse: true}, {Exclusive: true, Reverse: true}} {
					t.Run(fmt.Sprint(dt, dims, axis, o), func(t *testing.T) {
						x := arg{random(r, dt, size(dims)), dims}
						if dt.IsFloat() { // of which no two differ much
							x.flat = uniform(r, dt, size(dims))
							if size(dims) > 0 && dt.IsHalfPrecision() {
								return // the Go backend adds in 16 bits
							}
						}
						n.add(same(t, b, ref, []arg{x}, func(f compute.Function, in []value) (value, error) { return f.CumSum(in[0], axis, o) }))
					})
				}
			}
		}
	}
	n.check(t, 450, 300)
}
