package main

import (
	"math"
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// A seed gives the same numbers and leaves the same state with either backend:
// uniform ones, integers and what dropout keeps to the last bit, normal ones but
// for the rounding of a logarithm and a cosine.
func TestSameRandomNumbers(t *testing.T) {
	type draw = func(state *graph.Node, s shapes.Shape) (next, values *graph.Node)
	for _, c := range []struct {
		name string
		dt   dtypes.DType
		draw draw
		tol  float64
	}{
		{"uniform", dtypes.Float32, graph.RandomUniform, 0},
		{"uniform of 64 bits", dtypes.Float64, graph.RandomUniform, 0},
		{"normal", dtypes.Float32, graph.RandomNormal, 2e-6},
		{"normal of 64 bits", dtypes.Float64, graph.RandomNormal, 4e-15},
		{"integers", dtypes.Int32, func(state *graph.Node, s shapes.Shape) (next, values *graph.Node) {
			return graph.RandomIntN(state, 10, s)
		}, 0},
		{"dropout", dtypes.Float32, func(state *graph.Node, s shapes.Shape) (next, values *graph.Node) {
			next, values = graph.RandomUniform(state, s)
			kept := graph.GreaterThan(values, graph.Scalar(state.Graph(), s.DType, 0.3))
			return next, graph.ConvertDType(kept, dtypes.Int32)
		}, 0},
	} {
		var lists [2][]reflect.Value
		var states [2][]uint64
		for i, name := range []string{"go", "millrace:cpu"} {
			b, err := compute.NewWithConfig(name)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Finalize()
			exec, err := graph.NewExec(b, func(g *graph.Graph) []*graph.Node {
				state := graph.RNGStateFromSeedForGraph(g, 42)
				state, first := c.draw(state, shapes.Make(c.dt, 70, 33))
				state, second := c.draw(state, shapes.Make(c.dt, 5))
				return []*graph.Node{graph.Reshape(first, 70*33), second, graph.Slice(state, graph.AxisRange(0, 2))}
			})
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Exec()
			if err != nil {
				t.Fatalf("%s with %s: %v", c.name, name, err)
			}
			for _, x := range out[:2] {
				lists[i] = append(lists[i], reflect.ValueOf(x.Value()))
			}
			states[i] = out[2].Value().([]uint64)
		}
		if !reflect.DeepEqual(states[0], states[1]) {
			t.Errorf("%s: the state behind it is %x, with the Go backend %x", c.name, states[1], states[0])
		}
		for k, want := range lists[0] {
			for i := range want.Len() {
				x, y := lists[1][k].Index(i), want.Index(i)
				if c.tol == 0 && !x.Equal(y) || c.tol > 0 && !(math.Abs(x.Float()-y.Float()) <= c.tol*(1+math.Abs(y.Float()))) {
					t.Errorf("%s: number %d of draw %d is %v, with the Go backend %v", c.name, i, k, x, y)
				}
			}
		}
	}
}
