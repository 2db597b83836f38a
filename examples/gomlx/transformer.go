package main

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/nn"
)

// headWidth is the length of the vectors that a head of attention compares.
const headWidth = 32

// width is the length of a transformer's vectors.
func (c config) width() int { return c.hidden / 4 }

// transformer is a decoder of characters, numbers [batch, length], to logits of the
// next one at each place.
func transformer(c config, scope *model.Scope, tokens *graph.Node) *graph.Node {
	length := tokens.Shape().Dim(1)
	at := graph.Iota(tokens.Graph(), shapes.Make(dtypes.Int32, length), 0)
	// A place sees those before it and itself.
	sees := graph.GreaterOrEqual(graph.ExpandAxes(at, 1), graph.ExpandAxes(at, 0))
	return decode(c, scope, tokens, at, func(_ *model.Scope, q, k, v *graph.Node) *graph.Node { return attention(q, k, v, sees) })
}

// decode is the transformer but for what attention sees. at are the places of the
// characters.
func decode(c config, scope *model.Scope, tokens, at *graph.Node, attend func(scope *model.Scope, q, k, v *graph.Node) *graph.Node) *graph.Node {
	g := tokens.Graph()
	table := variable(scope.In("embedding"), g, 50*c.width(), c.vocabulary, c.width())
	places := variable(scope.In("places"), g, 50*c.width(), c.context, c.width())
	x := graph.Gather(table, graph.ExpandAxes(tokens, -1))
	x = graph.Add(x, graph.ExpandAxes(graph.Gather(places, graph.ExpandAxes(at, -1)), 0))
	for i := range c.layers {
		scope := scope.In("layer%d", i+1)
		h := norm(scope.In("norm1"), x)
		q, k, v := heads(scope.In("query"), h), heads(scope.In("key"), h), heads(scope.In("value"), h)
		mixed := graph.Reshape(attend(scope, q, k, v), x.Shape().Dimensions...)
		x = graph.Add(x, dense(scope.In("mixed"), mixed, c.width(), activation.TypeNone))
		h = dense(scope.In("wide"), norm(scope.In("norm2"), x), c.hidden, activation.TypeGelu)
		x = graph.Add(x, dense(scope.In("narrow"), h, c.width(), activation.TypeNone))
	}
	x = norm(scope.In("norm"), x)
	return graph.DotGeneral(x, []int{2}, nil, table, []int{1}, nil)
}

// heads is a layer whose result is cut into heads, [batch, length, heads, headWidth].
func heads(scope *model.Scope, x *graph.Node) *graph.Node {
	y := dense(scope, x, x.Shape().Dim(-1), activation.TypeNone)
	d := y.Shape().Dimensions
	return graph.Reshape(y, d[0], d[1], d[2]/headWidth, headWidth)
}

// attention mixes values by how much queries and keys agree, where sees, which has an
// axis for queries and one for keys, lets it.
func attention(q, k, v, sees *graph.Node) *graph.Node {
	scores := graph.MulScalar(graph.Einsum("bqhd,bkhd->bhqk", q, k), 1/math.Sqrt(headWidth))
	hidden := graph.Infinity(q.Graph(), scores.DType(), -1)
	scores = graph.Where(graph.BroadcastToDims(graph.ExpandAxes(sees, 0, 1), scores.Shape().Dimensions...), scores, graph.BroadcastToDims(hidden, scores.Shape().Dimensions...))
	return graph.Einsum("bhqk,bkhd->bqhd", graph.Softmax(scores, -1), v)
}

func norm(scope *model.Scope, x *graph.Node) *graph.Node {
	n := x.Shape().Dim(-1)
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	gain := scope.VariableWithValue("gain", ones).NodeValue(x.Graph())
	offset := scope.VariableWithValue("offset", make([]float32, n)).NodeValue(x.Graph())
	return nn.LayerNorm(x, []int{-1}, 1e-5, gain, offset, nil)
}
