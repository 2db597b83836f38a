package main

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
)

const scanSide = 32

// unetModel takes noise out of images: convolutions on the way down, to a quarter of the
// side, and up again, where what was on the same floor is put beside it.
func unetModel(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	x := block(scope.In("down0"), inputs[0], 8)
	floors := []*graph.Node{x}
	for i, channels := range []int{16, 32} {
		x = block(scope.In("down%d", i+1), graph.MeanPool(x).Window(2).Done(), channels)
		floors = append(floors, x)
	}
	for i := 1; i >= 0; i-- {
		floor := floors[i]
		d := floor.Shape().Dimensions
		x = graph.Interpolate(x, graph.NoInterpolation, d[1], d[2], graph.NoInterpolation).Nearest().Done()
		x = block(scope.In("up%d", i), graph.Concatenate([]*graph.Node{x, floor}, -1), d[3])
	}
	return []*graph.Node{layers.Convolution(scope.In("out"), x).Channels(1).KernelSize(1).Done()}
}

// block is a convolution behind which batches are normalised, op by op: the Go backend lacks
// the op that does it in one.
func block(scope *model.Scope, x *graph.Node, channels int) *graph.Node {
	x = layers.Convolution(scope.In("conv"), x).Channels(channels).KernelSize(3).PadSame().Done()
	return activation.Relu(norm.BatchNorm(scope.In("norm"), x, -1).UseBackendInference(false).Done())
}

// scans are images with noise on them, and without.
func scans(r *rand.Rand, size int) (inputs, labels []*tensors.Tensor) {
	clean, noisy := make([]float32, size*scanSide*scanSide), make([]float32, size*scanSide*scanSide)
	for i := range size {
		cx, cy := r.Float32()*scanSide, r.Float32()*scanSide
		for p := range scanSide * scanSide {
			dx, dy := float32(p%scanSide)-cx, float32(p/scanSide)-cy
			at := i*scanSide*scanSide + p
			clean[at] = 1 / (1 + (dx*dx+dy*dy)/16)
			noisy[at] = clean[at] + 0.3*float32(r.NormFloat64())
		}
	}
	dims := []int{size, scanSide, scanSide, 1}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(noisy, dims...)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(clean, dims...)}
}
