package main

import (
	"math/rand/v2"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

const (
	places     = 4000
	placeWidth = 64
)

func shape(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

// neighbours finds the nearest of many places for each query of a batch, and reads the sum
// of the squared distances to them. There is nothing to train.
func neighbours(b compute.Backend) (*session, error) {
	r := rand.New(rand.NewPCG(seed, 2))
	known := normals(r, places, placeWidth)
	exec, err := graph.NewExec(b, func(known, queries *graph.Node) []*graph.Node {
		// |q-p|^2 = |q|^2 - 2 q.p + |p|^2
		far := graph.Einsum("qd,pd->qp", queries, known)
		far = graph.Add(graph.MulScalar(far, -2), graph.ReduceAndKeep(graph.Square(queries), graph.ReduceSum, -1))
		far = graph.Add(far, graph.ExpandAxes(graph.ReduceSum(graph.Square(known), -1), 0))
		return []*graph.Node{graph.ArgMin(far, -1), graph.ReduceAllSum(graph.ReduceMin(far, -1))}
	})
	if err != nil {
		return nil, err
	}
	return &session{
		step: func(size int) (float64, error) {
			queries := normals(r, size, placeWidth)
			out, err := exec.Exec(known, queries)
			if err != nil {
				return 0, err
			}
			sum := float64(tensors.ToScalar[float32](out[1]))
			for _, t := range append(out, queries) {
				if err := t.FinalizeAll(); err != nil {
					return 0, err
				}
			}
			return sum, nil
		},
		close: func() { exec.Finalize() },
	}, nil
}
