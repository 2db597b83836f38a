package main

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
)

const (
	picturePixels = 28 * 28
	latent        = 16
)

// vaeModel is a variational autoencoder: a normal draw around what the encoder says is
// decoded, and its loss, which it adds itself, is the binary cross entropy of pixels and
// the divergence of the draws from normal ones.
func vaeModel(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	x := inputs[0]
	g := x.Graph()
	h := activation.Relu(layers.DenseWithBias(scope.In("encoder1"), x, 256))
	mean := layers.DenseWithBias(scope.In("mean"), h, latent)
	logVar := layers.DenseWithBias(scope.In("variance"), h, latent)
	noise := scope.RandomNormal(g, mean.Shape())
	z := graph.Add(mean, graph.Mul(noise, graph.Exp(graph.MulScalar(logVar, 0.5))))
	h = activation.Relu(layers.DenseWithBias(scope.In("decoder1"), z, 256))
	logits := layers.DenseWithBias(scope.In("decoder2"), h, picturePixels)
	// max(l, 0) - l*x + log(1 + exp(-|l|)), without overflow.
	cross := graph.Add(graph.Sub(activation.Relu(logits), graph.Mul(logits, x)), graph.Log1p(graph.Exp(graph.Neg(graph.Abs(logits)))))
	rebuilt := graph.ReduceAllMean(graph.ReduceSum(cross, -1))
	divergence := graph.MulScalar(graph.ReduceSum(graph.Sub(graph.Add(graph.Square(mean), graph.Exp(logVar)), graph.OnePlus(logVar)), -1), 0.5)
	train.AddLoss(graph.Add(rebuilt, graph.ReduceAllMean(divergence)))
	return []*graph.Node{logits}
}

// pictures are spots of light on black, pixels from 0 to 1.
func pictures(r *rand.Rand, size int) (inputs, labels []*tensors.Tensor) {
	const side = 28
	x := make([]float32, size*picturePixels)
	for i := range size {
		cx, cy := r.Float32()*side, r.Float32()*side
		for p := range picturePixels {
			dx, dy := float32(p%side)-cx, float32(p/side)-cy
			x[i*picturePixels+p] = 1 / (1 + (dx*dx+dy*dy)/16)
		}
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, size, picturePixels)}, nil
}
