package gomlxbackend

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// What is folded from no elements is the start of that fold, and no other's.
func TestFoldsOfNothing(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	run := func(dims []int, build func(f compute.Function, x compute.Value) compute.Value) []float32 {
		t.Helper()
		bd := b.Builder("nothing")
		f := bd.Main()
		s := shapes.Make(dtypes.Float32, dims...)
		y := build(f, must(f.Parameter("x", s, nil)))
		if err := f.Return([]compute.Value{y}, nil); err != nil {
			t.Fatal(err)
		}
		out, err := must(bd.Compile()).Execute([]compute.Buffer{upload(t, b, nil, dims...)}, nil, 0)
		if err != nil {
			t.Fatalf("%v: %v", dims, err)
		}
		return download(t, out[0])
	}
	got := run([]int{0}, func(f compute.Function, x compute.Value) compute.Value {
		var list []compute.Value
		for _, how := range []compute.ReduceOpType{compute.ReduceOpSum, compute.ReduceOpProduct, compute.ReduceOpMax, compute.ReduceOpMin} {
			list = append(list, must(f.ReduceWindow(x, how, []int{2}, []int{1}, nil, nil, [][2]int{{1, 1}})))
		}
		return must(f.Concatenate(0, list...))
	})
	inf := float32(math.Inf(1))
	if want := []float32{0, 1, -inf, inf}; !slices.Equal(got, want) {
		t.Errorf("windows: %v, want %v", got, want)
	}
	// Where nothing is left besides, too.
	for axis, dims := range [][]int{{0, 2, 0}, {0, 0, 3}, {2, 0, 0}} {
		for name, build := range map[string]func(f compute.Function, x compute.Value) (compute.Value, error){
			"max":     func(f compute.Function, x compute.Value) (compute.Value, error) { return f.ReduceMax(x, axis) },
			"min":     func(f compute.Function, x compute.Value) (compute.Value, error) { return f.ReduceMin(x, axis) },
			"softmax": func(f compute.Function, x compute.Value) (compute.Value, error) { return f.FusedSoftmax(x, axis) },
		} {
			got := run(dims, func(f compute.Function, x compute.Value) compute.Value { return must(build(f, x)) })
			if len(got) != 0 {
				t.Errorf("%s along axis %d of %v: %v", name, axis, dims, fmt.Sprint(got))
			}
		}
	}
}

// A stride that is longer than what there is takes the first element.
func TestLongStride(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	e := compile(b, 3, 1, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Slice(in[0], []int{1}, []int{3}, []int{math.MaxInt}))}
	})
	out, err := e.Execute([]compute.Buffer{upload(t, b, []float32{1, 2, 3}, 3)}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := download(t, out[0]); !slices.Equal(got, []float32{2}) {
		t.Errorf("%v", got)
	}
}
