package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// step is the transformer for one more character, [1, 1], at a place: keys and values
// of those before are kept in variables.
func step(c config, scope *model.Scope, token, at *graph.Node) *graph.Node {
	g := token.Graph()
	places := graph.Iota(g, shapes.Make(dtypes.Int32, 1, c.context), 1)
	sees := graph.LessOrEqual(places, graph.BroadcastToDims(at, 1, c.context))
	here := graph.Reshape(graph.Equal(places, graph.BroadcastToDims(at, 1, c.context)), 1, c.context, 1, 1)
	return decode(c, scope, token, graph.Reshape(at, 1), func(scope *model.Scope, q, k, v *graph.Node) *graph.Node {
		kept := func(name string, x *graph.Node) *graph.Node {
			dims := []int{1, c.context, q.Shape().Dim(2), headWidth}
			keep := scope.VariableWithValue(name, tensors.FromShape(shapes.Make(dtypes.Float32, dims...))).SetTrainable(false)
			all := graph.Where(graph.BroadcastToDims(here, dims...), graph.BroadcastToDims(x, dims...), keep.NodeValue(g))
			keep.SetNodeValue(all)
			return all
		}
		return attention(q, kept("keys", k), kept("values", v), sees)
	})
}

// generate continues a text by n characters, one at a time. The colder, the likelier
// ones are drawn; at 0 the likeliest. each is told the logits of every step.
func generate(c config, backend compute.Backend, store *model.Store, t *text, prompt string, n int, heat float64, each func(logits []float32)) (string, error) {
	exec, err := model.NewExec(backend, store, func(scope *model.Scope, token, at *graph.Node) *graph.Node { return step(c, scope, token, at) })
	if err != nil {
		return "", err
	}
	defer exec.Finalize()
	tokens := t.encode([]byte(prompt))
	if len(tokens) == 0 || len(tokens)+n > c.context {
		return "", fmt.Errorf("a prompt of %d characters and %d more: the model sees from 1 to %d", len(tokens), n, c.context)
	}
	r, total := rand.New(rand.NewPCG(5, 6)), len(tokens)+n
	for i := 0; i+1 < total; i++ {
		out, err := exec.Exec([][]int32{{tokens[i]}}, int32(i))
		if err != nil {
			return "", fmt.Errorf("character %d: %w", i, err)
		}
		logits := tensors.MustCopyFlatData[float32](out[0])
		if err := out[0].FinalizeAll(); err != nil {
			return "", err
		}
		if each != nil {
			each(logits)
		}
		if i+1 == len(tokens) {
			tokens = append(tokens, draw(r, logits, heat))
		}
	}
	var list []byte
	for _, token := range tokens {
		list = append(list, t.chars[token])
	}
	return string(list), nil
}

// draw chooses a character by its logits.
func draw(r *rand.Rand, logits []float32, heat float64) int32 {
	best := 0
	for i, l := range logits {
		if l > logits[best] {
			best = i
		}
	}
	if heat <= 0 {
		return int32(best)
	}
	sum, chances := 0.0, make([]float64, len(logits))
	for i, l := range logits {
		chances[i] = math.Exp(float64(l-logits[best]) / heat)
		sum += chances[i]
	}
	at := r.Float64() * sum
	for i, p := range chances {
		if at -= p; at < 0 {
			return int32(i)
		}
	}
	return int32(best)
}
