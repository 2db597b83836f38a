package compliance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// uniform is n numbers of a dtype between -2 and 2.
func uniform(r *rand.Rand, dt dtypes.DType, n int) any {
	list := make([]float64, n)
	for i := range list {
		list[i] = 4*r.Float64() - 2
	}
	return fromFloats(dt, list)
}

// closeTo compares a fused op with the Go backend's. Both round sums in an order
// of their own, so that the error is that of the numbers that were added.
func closeTo(t *testing.T, b, ref compute.Backend, tolerance float64, args []arg, op func(f compute.Function, in []compute.Value) (compute.Value, error)) {
	t.Helper()
	want, wantShape, err := evaluate(ref, args, op)
	if err != nil {
		t.Fatalf("the Go backend: %v", err)
	}
	got, shape, err := evaluate(b, args, op)
	if err != nil {
		t.Error(err)
		return
	}
	if !shape.Equal(wantShape) {
		t.Errorf("a %s and not a %s", shape, wantShape)
		return
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	bad := 0
	for i := range g.Len() {
		x, _ := element(g.Index(i))
		y, _ := element(w.Index(i))
		if x != x && y != y || math.Abs(x-y) <= tolerance*(1+math.Abs(y)) {
			continue
		}
		if bad++; bad <= 5 {
			t.Errorf("at %d: %v, want %v", i, x, y)
		}
	}
}

// The fused ops, in every form that the Go backend has them.
func TestFusedAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(5, 6))
	type value = compute.Value
	floats := map[dtypes.DType]float64{dtypes.Float32: 1e-5, dtypes.Float64: 1e-13}
	for dt, tol := range floats {
		for axis := range 3 {
			t.Run(fmt.Sprint("Softmax/", dt, axis), func(t *testing.T) {
				closeTo(t, b, ref, tol, []arg{{uniform(r, dt, 3*5*70), []int{3, 5, 70}}}, func(f compute.Function, in []value) (value, error) {
					return f.FusedSoftmax(in[0], axis)
				})
			})
		}
		for _, axes := range [][]int{{2}, {0}, {1, 2}, {-1}} {
			for given := range 3 {
				t.Run(fmt.Sprint("LayerNorm/", dt, axes, given), func(t *testing.T) {
					dims := []int{4, 5, 6}
					var wide []int
					n := 1
					for _, a := range axes {
						wide = append(wide, dims[(a+3)%3])
						n *= dims[(a+3)%3]
					}
					if axes[0] == 0 {
						wide = []int{n, 1, 1}
					}
					args := []arg{{uniform(r, dt, 120), dims}, {uniform(r, dt, n), wide}, {uniform(r, dt, n), wide}}
					closeTo(t, b, ref, 10*tol, args[:1+given], func(f compute.Function, in []value) (value, error) {
						in = append(in, nil, nil)
						return f.FusedLayerNorm(in[0], axes, 1e-5, in[1], in[2])
					})
				})
			}
		}
	}
	for _, dt := range []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Float16, dtypes.BFloat16} {
		tol := max(floats[dt], tolerance[dt])
		for _, exact := range []bool{true, false} {
			t.Run(fmt.Sprint("Gelu/", dt, exact), func(t *testing.T) {
				closeTo(t, b, ref, 2*tol, []arg{{uniform(r, dt, 300), []int{30, 10}}}, func(f compute.Function, in []value) (value, error) {
					return gelu(f, in[0], exact)
				})
			})
		}
	}
	for dt, tol := range floats {
		for _, act := range activationTypes {
			for name, s := range map[string]struct {
				x, w   []int
				layout compute.DenseLayout
			}{
				"matrix":     {[]int{7, 20}, []int{20, 9}, compute.DenseLayoutInputOutputs},
				"transposed": {[]int{7, 20}, []int{9, 20}, compute.DenseLayoutOutputsInput},
				"batch":      {[]int{2, 3, 20}, []int{20, 9}, compute.DenseLayoutInputOutputs},
				"heads":      {[]int{2, 3, 20}, []int{20, 3, 3}, compute.DenseLayoutInputOutputs},
				"headsT":     {[]int{7, 20}, []int{3, 3, 20}, compute.DenseLayoutOutputsInput},
				"vector":     {[]int{20}, []int{20, 9}, compute.DenseLayoutInputOutputs},
			} {
				t.Run(fmt.Sprint("Dense/", dt, "/", act, "/", name), func(t *testing.T) {
					bias := []int{9}
					if len(s.w) == 3 {
						bias = []int{3, 3}
					}
					args := []arg{{uniform(r, dt, size(s.x)), s.x}, {uniform(r, dt, 180), s.w}, {uniform(r, dt, 9), bias}}
					dense := func(f compute.Function, in []value) (value, error) {
						return f.FusedDense(in[0], in[1], append(in, nil)[2], denseConfig(act, s.layout))
					}
					closeTo(t, b, ref, 10*tol, args, dense)
					closeTo(t, b, ref, 10*tol, args[:2], dense)
				})
			}
		}
	}
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Quantized weights of every scheme and dtype that the Go backend takes, in
// blocks that divide a row or not.
func TestQuantizedAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(7, 8))
	type value = compute.Value
	bytes := func(dt dtypes.DType, n int) any {
		flat := dtypes.MakeAnySlice(dt, n)
		for i, raw := 0, dtypes.UnsafeByteSliceFromAny(flat); i < n; i++ {
			raw[i] = byte(r.IntN(256))
		}
		return flat
	}
	for _, dt := range []dtypes.DType{dtypes.Int8, dtypes.Uint8} {
		for _, scheme := range []compute.QuantizationScheme{compute.QuantLinear, compute.QuantNF4} {
			for _, block := range []int{8, 10, 24, 100} {
				for _, lead := range [][]int{{1}, {5}, {2, 3}, nil} {
					for given := range 3 { // also a bias, also a zero point
						if given == 2 && scheme == compute.QuantNF4 {
							continue
						}
						t.Run(fmt.Sprint(dt, "/", scheme, "/", block, "/", lead, "/", given), func(t *testing.T) {
							const k, n = 33, 24
							x := append(append([]int{}, lead...), k)
							blocks := (n + block - 1) / block
							args := []arg{
								{uniform(r, dtypes.Float32, size(x)), x}, {bytes(dt, k*n), []int{k, n}}, {uniform(r, dtypes.Float32, k*blocks), []int{k, blocks}},
								{uniform(r, dtypes.Float32, n), []int{n}}, {uniform(r, dtypes.Float32, k*blocks), []int{k, blocks}},
							}
							closeTo(t, b, ref, 2e-3, args[:3+given], func(f compute.Function, in []value) (value, error) {
								q := &compute.Quantization{Scheme: scheme, Scale: in[2], BlockAxis: 1, BlockSize: block}
								in = append(in, nil, nil)
								q.ZeroPoint = in[4]
								return f.FusedQuantizedDense(in[0], in[1], in[3], q, compute.ActivationNone)
							})
						})
					}
				}
			}
		}
	}
}
