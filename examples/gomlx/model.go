package main

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/nn"
)

const (
	classes = 10
	side    = 28 // of the square images
	pixels  = side * side
)

// network is a function of images, or of characters, to logits.
type network func(c config, scope *model.Scope, in *graph.Node) *graph.Node

var networks = map[string]network{"mlp": mlp, "cnn": cnn, "transformer": transformer}

func names() []string { return slices.Sorted(maps.Keys(networks)) }

// mlp is a perceptron with two hidden layers.
func mlp(c config, scope *model.Scope, images *graph.Node) *graph.Node {
	x := dense(scope.In("1"), images, c.hidden, activation.TypeRelu)
	x = dense(scope.In("2"), x, c.hidden/2, activation.TypeRelu)
	return dense(scope.In("3"), x, classes, activation.TypeNone)
}

// cnn is two convolutions, each behind it a maximum over 2x2, and a layer.
func cnn(c config, scope *model.Scope, images *graph.Node) *graph.Node {
	x := graph.Reshape(images, images.Shape().Dim(0), side, side, 1)
	for i, channels := range []int{c.hidden / 8, c.hidden / 4} {
		from := x.Shape().Dim(3)
		kernel := variable(scope.In("conv%d", i+1), x.Graph(), 9*from, 3, 3, from, channels)
		x = graph.MaxPool(activation.Relu(graph.Convolve(x, kernel).PadSame().Done())).Window(2).Done()
	}
	x = graph.Reshape(x, x.Shape().Dim(0), -1)
	return dense(scope.In("3"), x, classes, activation.TypeNone)
}

// dense is a layer x·W + b.
func dense(scope *model.Scope, x *graph.Node, out int, act activation.Type) *graph.Node {
	in := x.Shape().Dim(-1)
	w := variable(scope, x.Graph(), in, in, out)
	b := scope.VariableWithValue("bias", make([]float32, out)).NodeValue(x.Graph())
	return nn.Dense(x, w, b, compute.DenseLayoutInputOutputs, act)
}

// variable is one that starts with the same numbers whatever the backend: those
// of GoMLX's initialisers are made by it.
func variable(scope *model.Scope, g *graph.Graph, fanIn int, dims ...int) *graph.Node {
	n := 1
	for _, d := range dims {
		n *= d
	}
	r := rand.New(rand.NewPCG(uint64(fanIn), uint64(n)))
	values, scale := make([]float32, n), math.Sqrt(2/float64(fanIn))
	for i := range values {
		values[i] = float32(r.NormFloat64() * scale)
	}
	return scope.VariableWithValue("weights", tensors.FromFlatDataAndDimensions(values, dims...)).NodeValue(g)
}
