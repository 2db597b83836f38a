package main

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
)

const (
	tokenWidth = 64
	tokenKinds = 10
	experts    = 8
)

// moeModel is a mixture of experts: of eight dense layers the two that the gate likes most
// are added up, token by token.
func moeModel(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	x := inputs[0]
	g := x.Graph()
	gate := layers.DenseWithBias(scope.In("gate"), x, experts)
	best := graph.TopKMask(graph.StopGradient(gate), 2, -1)
	least := graph.BroadcastToShape(graph.Scalar(g, gate.DType(), -1e9), gate.Shape())
	weights := graph.Softmax(graph.Where(best, gate, least), -1)
	wide := scope.In("wide").VariableWithShape("weights", shape(experts, tokenWidth, 2*tokenWidth)).NodeValue(g)
	narrow := scope.In("narrow").VariableWithShape("weights", shape(experts, 2*tokenWidth, tokenWidth)).NodeValue(g)
	h := activation.Gelu(graph.Einsum("td,edh->eth", x, wide))
	y := graph.Einsum("eth,ehd->etd", h, narrow)
	mixed := graph.Einsum("te,etd->td", weights, y)
	return []*graph.Node{layers.DenseWithBias(scope.In("out"), graph.Add(x, mixed), tokenKinds)}
}

// tokens are vectors with a kind.
func tokens(r *rand.Rand, size int) (inputs, labels []*tensors.Tensor) {
	return []*tensors.Tensor{normals(r, size, tokenWidth)}, []*tensors.Tensor{integers(r, tokenKinds, size, 1)}
}
