package compliance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// comparator makes a closure on pairs of elements of the inputs.
func comparator(f compute.Function, dts []dtypes.DType, build func(c compute.Function, p values) compute.Value) compute.Function {
	return closure(f, func(c compute.Function) values {
		var p values
		for _, dt := range dts {
			p = append(p, must(c.Parameter("lhs", shapes.Make(dt), nil)), must(c.Parameter("rhs", shapes.Make(dt), nil)))
		}
		return values{build(c, p)}
	})
}

// Comparators, and what they mean for two elements of a float32 and an int32
// input. The first two are those that Millrace sorts by itself.
var comparators = []struct {
	name  string
	build func(c compute.Function, p values) compute.Value
	less  func(x, y float32, i, k int32) bool
}{
	{"less", func(c compute.Function, p values) compute.Value { return must(c.LessThan(p[0], p[1])) },
		func(x, y float32, _, _ int32) bool { return x < y }},
	{"greater", func(c compute.Function, p values) compute.Value { return must(c.GreaterThan(p[0], p[1])) },
		func(x, y float32, _, _ int32) bool { return x > y }},
	{"less turned", func(c compute.Function, p values) compute.Value { return must(c.LessThan(p[1], p[0])) },
		func(x, y float32, _, _ int32) bool { return y < x }},
	{"by the second", func(c compute.Function, p values) compute.Value { return must(c.GreaterThan(p[3], p[2])) },
		func(_, _ float32, i, k int32) bool { return k > i }},
	{"absolute", func(c compute.Function, p values) compute.Value {
		return must(c.LessThan(must(c.Abs(p[0])), must(c.Abs(p[1]))))
	}, func(x, y float32, _, _ int32) bool { return math.Abs(float64(x)) < math.Abs(float64(y)) }},
	{"two keys", func(c compute.Function, p values) compute.Value {
		tie := must(c.LogicalAnd(must(c.Equal(p[2], p[3])), must(c.GreaterThan(p[0], p[1]))))
		return must(c.LogicalOr(must(c.LessThan(p[2], p[3])), tie))
	}, func(x, y float32, i, k int32) bool { return i < k || i == k && x > y }},
	{"remainder", func(c compute.Function, p values) compute.Value {
		three := must(c.Constant([]int32{3}))
		return must(c.LessThan(must(c.Rem(p[2], three)), must(c.Rem(p[3], three))))
	}, func(_, _ float32, i, k int32) bool { return i%3 < k%3 }},
}

// Random inputs along either axis, against a stable sort of Go's.
func TestSort(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(9, 10))
	for _, c := range comparators {
		for _, dims := range [][]int{{1}, {2}, {7}, {16}, {33}, {3, 9}, {5, 4}, {2, 6, 3}, {0, 3}, {3, 0}} {
			for axis := range dims {
				t.Run(fmt.Sprint(c.name, dims, axis), func(t *testing.T) {
					size := product(dims)
					x, k := make([]float32, size), make([]int32, size)
					for i := range x {
						x[i], k[i] = float32(r.IntN(9)-4)/2, int32(r.IntN(5))
						if x[i] == 0 && r.IntN(2) == 0 {
							x[i] = float32(math.Copysign(0, -1))
						}
					}
					wantX, wantK := sorted(x, k, dims, axis, c.less)
					args := []arg{{x, dims}, {k, dims}}
					for i, want := range []any{wantX, wantK} {
						got, _, err := evaluate(b, args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
							out, err := f.Sort(comparator(f, []dtypes.DType{dtypes.Float32, dtypes.Int32}, c.build), axis, true, in...)
							if err != nil {
								return nil, err
							}
							return out[i], nil
						})
						if err != nil || !reflect.DeepEqual(got, want) {
							t.Errorf("result %d of %v, %v: %v, want %v (%v)", i, x, k, got, want, err)
						}
					}
				})
			}
		}
	}
}

func sorted(x []float32, k []int32, dims []int, axis int, less func(x, y float32, i, j int32) bool) (wantX []float32, wantK []int32) {
	wantX, wantK = slices.Clone(x), slices.Clone(k)
	inner := product(dims[axis+1:])
	n := dims[axis]
	for start := range len(x) {
		if start/inner%n != 0 {
			continue
		}
		order := make([]int, n)
		for i := range order {
			order[i] = start + i*inner
		}
		slices.SortStableFunc(order, func(i, j int) int {
			switch {
			case less(x[i], x[j], k[i], k[j]):
				return -1
			case less(x[j], x[i], k[j], k[i]):
				return 1
			}
			return 0
		})
		for i, from := range order {
			wantX[start+i*inner], wantK[start+i*inner] = x[from], k[from]
		}
	}
	return wantX, wantK
}

// One input of every dtype, both ways and by a value captured from outside.
func TestSortDTypes(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(11, 12))
	for _, dt := range all {
		x := arg{random(r, dt, 40), []int{4, 10}}
		for _, op := range []compute.OpType{compute.OpTypeLessThan, compute.OpTypeGreaterThan} {
			for _, stable := range []bool{false, true} {
				t.Run(fmt.Sprint(dt, op, stable), func(t *testing.T) {
					ok := agree(t, b, ref, []arg{x}, nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
						out, err := f.Sort(comparator(f, []dtypes.DType{dt}, func(c compute.Function, p values) compute.Value {
							return must(call(op)(c, p))
						}), -1, stable, in...)
						if err != nil {
							return nil, err
						}
						return out[0], nil
					})
					if !ok && dt != dtypes.Bool {
						t.Error("the Go backend does not sort")
					}
				})
			}
		}
	}
	got, _, err := evaluate(b, []arg{{[]int32{5, 1, 4, 2, 3}, []int{5}}, {[]int32{3}, nil}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
		out, err := f.Sort(comparator(f, []dtypes.DType{dtypes.Int32}, func(c compute.Function, p values) compute.Value {
			return must(c.LessThan(must(c.Abs(must(c.Sub(p[0], in[1])))), must(c.Abs(must(c.Sub(p[1], in[1]))))))
		}), 0, true, in[0])
		if err != nil {
			return nil, err
		}
		return out[0], nil
	})
	if want := []int32{3, 4, 2, 5, 1}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("by distance from 3: %v, want %v (%v)", got, want, err)
	}
}

func TestBadSort(t *testing.T) {
	b := open(t, "millrace:cpu")
	f := b.Builder("bad").Main()
	x, y := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil)), must(f.Parameter("y", shapes.Make(dtypes.Int32, 3), nil))
	less := comparator(f, []dtypes.DType{dtypes.Float32}, func(c compute.Function, p values) compute.Value { return must(c.LessThan(p[0], p[1])) })
	other := comparator(f, []dtypes.DType{dtypes.Float32}, func(c compute.Function, p values) compute.Value { return must(c.Add(p[0], p[1])) })
	for want, do := range map[string]func() ([]compute.Value, error){
		"axis 2":                  func() ([]compute.Value, error) { return f.Sort(less, 2, true, x) },
		"differ in shape":         func() ([]compute.Value, error) { return f.Sort(less, 0, true, x, y) },
		"is a (Float32), the":     func() ([]compute.Value, error) { return f.Sort(less, 0, true, y) },
		"at least one":            func() ([]compute.Value, error) { return f.Sort(less, 0, true) },
		"the comparator's result": func() ([]compute.Value, error) { return f.Sort(other, 0, true, x) },
	} {
		if _, err := do(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Sort") {
			t.Errorf("%q: %v", want, err)
		}
	}
	reshaped := comparator(f, []dtypes.DType{dtypes.Float32}, func(c compute.Function, p values) compute.Value {
		return must(c.ReduceLogicalAnd(must(c.Reshape(must(c.LessThan(p[0], p[1])), 1)), 0))
	})
	if _, err := f.Sort(reshaped, 0, true, x); !compute.IsNotImplemented(err) {
		t.Errorf("a comparator of vectors: %v", err)
	}
}
