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
	nodeFeatures = 32
	nodeClasses  = 7
	nodeEdges    = 5 // of each node
)

// gnnModel says the class of each node of a graph by two rounds in which nodes send what
// they are to their neighbours: inputs are features [nodes, nodeFeatures] and edges, from
// and to, [edges, 1].
func gnnModel(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	x, from, to := inputs[0], inputs[1], inputs[2]
	for _, name := range []string{"round1", "round2"} {
		scope := scope.In("%s", name)
		sent := layers.DenseWithBias(scope.In("message"), x, 64)
		got := graph.MulScalar(graph.Scatter(to, graph.Gather(sent, from), sent.Shape(), false, false), 1.0/nodeEdges)
		x = activation.Relu(graph.Add(got, layers.DenseWithBias(scope.In("self"), x, 64)))
	}
	return []*graph.Node{layers.DenseWithBias(scope.In("out"), x, nodeClasses)}
}

// citations is a graph with edges at random.
func citations(r *rand.Rand, size int) (inputs, labels []*tensors.Tensor) {
	return []*tensors.Tensor{normals(r, size, nodeFeatures), integers(r, size, size*nodeEdges, 1), integers(r, size, size*nodeEdges, 1)},
		[]*tensors.Tensor{integers(r, nodeClasses, size, 1)}
}
