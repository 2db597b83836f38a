package main

import (
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/lstm"
	"github.com/gomlx/gomlx/ml/model"
)

const (
	waveFeatures = 8
	waveHidden   = 64
)

// lstmModel reads sequences [batch, length, waveFeatures] and says the next value of each.
// GoMLX unrolls the loop: a step's graph has some hundred nodes for each place.
func lstmModel(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	_, last, _ := lstm.New(scope.In("lstm"), inputs[0], waveHidden).Done()
	last = graph.Reshape(last, -1, waveHidden)
	return []*graph.Node{layers.DenseWithBias(scope.In("out"), last, 1)}
}

// waves are noisy sines of one length.
func waves(length int) batcher {
	return func(r *rand.Rand, size int) (inputs, labels []*tensors.Tensor) { return someWaves(r, size, length) }
}

// wavesOf are noisy sines whose length is the size.
func wavesOf(batch int) batcher {
	return func(r *rand.Rand, size int) (inputs, labels []*tensors.Tensor) { return someWaves(r, batch, size) }
}

func someWaves(r *rand.Rand, batch, length int) (inputs, labels []*tensors.Tensor) {
	x, next := make([]float32, 0, batch*length*waveFeatures), make([]float32, batch)
	for i := range batch {
		phase, step := 2*math.Pi*r.Float64(), 0.1+0.3*r.Float64()
		for at := range length {
			for f := range waveFeatures {
				x = append(x, float32(math.Sin(phase+step*float64(at)*float64(f+1))+0.05*r.NormFloat64()))
			}
		}
		next[i] = float32(math.Sin(phase + step*float64(length)))
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, batch, length, waveFeatures)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(next, batch, 1)}
}
