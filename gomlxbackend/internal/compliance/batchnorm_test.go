package compliance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

const epsilon = 1e-3

// normed is a batch normalisation in float64, by its definition, of elements
// whose feature is told by feature.
func normed(x, scale, offset []float64, feature func(i int) int) (y, mean, variance []float64) {
	n := len(scale)
	mean, variance, y = make([]float64, n), make([]float64, n), make([]float64, len(x))
	each := float64(len(x) / n)
	for i, v := range x {
		mean[feature(i)] += v / each
	}
	for i, v := range x {
		d := v - mean[feature(i)]
		variance[feature(i)] += d * d / each
	}
	for i, v := range x {
		c := feature(i)
		y[i] = (v-mean[c])/math.Sqrt(variance[c]+epsilon)*scale[c] + offset[c]
	}
	return y, mean, variance
}

func reals(r *rand.Rand, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = r.NormFloat64()
	}
	return list
}

func close64(t *testing.T, what string, got any, want []float64, tol float64) {
	t.Helper()
	v := reflect.ValueOf(got)
	if v.Len() != len(want) {
		t.Errorf("%s: %d elements, want %d", what, v.Len(), len(want))
		return
	}
	for i, w := range want {
		if g, _ := element(v.Index(i)); !(math.Abs(g-w) <= tol*(1+math.Abs(w))) {
			t.Errorf("%s: %d is %v, want %v", what, i, g, w)
			return
		}
	}
}

// The three ops along every axis: the first two against the definition, the
// gradients against differences of it.
func TestBatchNorm(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(51, 52))
	tolerances := map[dtypes.DType]float64{dtypes.Float64: 1e-9, dtypes.Float32: 1e-4, dtypes.Float16: 2e-2, dtypes.BFloat16: 1e-1}
	for dt, tol := range tolerances {
		for _, dims := range [][]int{{6}, {5, 3}, {4, 2, 3}, {2, 3, 2, 3}} {
			for axis := range dims {
				if product(dims) == dims[axis] && len(dims) > 1 {
					continue
				}
				what := fmt.Sprintf("%v %v along %d", dt, dims, axis)
				n, inner := dims[axis], product(dims[axis+1:])
				feature := func(i int) int { return i / inner % n }
				x, scale, offset, grad := reals(r, product(dims)), reals(r, n), reals(r, n), reals(r, product(dims))
				y, mean, variance := normed(x, scale, offset, feature)
				in := func(list []float64, dims ...int) arg { return arg{fromFloats(dt, list), dims} }
				run := func(args []arg, pick int, op func(f compute.Function, in []compute.Value) ([3]compute.Value, error)) any {
					got, _, err := evaluate(b, args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
						list, err := op(f, in)
						return list[pick], err
					})
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					return got
				}
				vectors := []arg{in(x, dims...), in(scale, n), in(offset, n), in(mean, n), in(variance, n), in(grad, dims...)}
				for i, want := range [][]float64{y, mean, variance} {
					close64(t, what+fmt.Sprint(": training ", i), run(vectors[:3], i, func(f compute.Function, in []compute.Value) (l [3]compute.Value, err error) {
						l[0], l[1], l[2], err = f.BatchNormForTraining(in[0], in[1], in[2], epsilon, axis)
						return l, err
					}), want, tol)
				}
				close64(t, what+": inference", run(vectors[:5], 0, func(f compute.Function, in []compute.Value) (l [3]compute.Value, err error) {
					l[0], err = f.BatchNormForInference(in[0], in[1], in[2], in[3], in[4], epsilon, axis)
					return l, err
				}), y, tol)
				if dt != dtypes.Float64 {
					continue
				}
				loss := func() float64 {
					y, _, _ := normed(x, scale, offset, feature)
					sum := 0.0
					for i, v := range y {
						sum += v * grad[i]
					}
					return sum
				}
				for i, list := range [][]float64{x, scale, offset} {
					want := make([]float64, len(list))
					for k := range list {
						const h = 1e-5
						was := list[k]
						list[k] = was + h
						up := loss()
						list[k] = was - h
						want[k] = (up - loss()) / (2 * h)
						list[k] = was
					}
					close64(t, what+fmt.Sprint(": gradient ", i), run(vectors, i, func(f compute.Function, in []compute.Value) (l [3]compute.Value, err error) {
						l[0], l[1], l[2], err = f.BatchNormGradient(in[0], in[1], in[3], in[4], in[5], epsilon, axis)
						return l, err
					}), want, 1e-5)
				}
			}
		}
	}
}

// Operands that do not fit, each in its place.
func TestBatchNormRefuses(t *testing.T) {
	b := open(t, "millrace:cpu")
	x, v := arg{make([]float32, 6), []int{2, 3}}, arg{make([]float32, 3), []int{3}}
	good := []arg{x, v, v, v, v}
	infer := func(axis int) func(f compute.Function, in []compute.Value) (compute.Value, error) {
		return func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.BatchNormForInference(in[0], in[1], in[2], in[3], in[4], epsilon, axis)
		}
	}
	if _, _, err := evaluate(b, good, infer(1)); err != nil {
		t.Fatal(err)
	}
	for _, axis := range []int{-1, 0, 2} {
		if _, _, err := evaluate(b, good, infer(axis)); err == nil {
			t.Errorf("axis %d", axis)
		}
	}
	for i := range good {
		for _, wrong := range []arg{{make([]float64, len(good[i].flat.([]float32))), good[i].dims}, {make([]float32, 4), []int{4}}, {make([]int32, 6), []int{2, 3}}} {
			bad := slices.Clone(good)
			bad[i] = wrong
			if _, _, err := evaluate(b, bad, infer(1)); err == nil {
				t.Errorf("operand %d is %v of %T", i, wrong.dims, wrong.flat)
			}
		}
	}
}
