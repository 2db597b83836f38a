package main

import (
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
)

// layerNormSuite is layer normalisation with a weight and a bias. Its variance takes two passes.
var layerNormSuite = &Suite{
	name: "layernorm", about: "layer normalisation along the last and a middle axis", shape: shape{32, 512, 2048}, sizes: "of the tensor",
	variants: always("last", "middle"), modes: bothModes, problem: layerNormProblem,
}

const layerNormEps = 1e-5

func layerNormProblem(variant string, s shape, as *arrays) (*problem, error) {
	axis := rowAxis(variant, s)
	params := shape{s[axis]}
	for range s[axis+1:] {
		params = append(params, 1)
	}
	x := as.normal("x", 2, s...)
	w := as.of("weight", params, func(r *rand.Rand, _ int) float64 { return 1 + 0.2*r.NormFloat64() })
	b := as.normal("bias", 0.5, params...)
	return &problem{
		shape: s, inputs: []*array{x, w, b}, oracle: layerNormOracle(x, w, b, axis),
		program: func(x []*millrace.Tensor) *millrace.Tensor { return layerNorm(x[0], x[1], x[2], axis) },
	}, nil
}

// layerNorm is layer normalisation as a program would write it.
func layerNorm(x, weight, bias *millrace.Tensor, axis int) *millrace.Tensor {
	d := x.Sub(x.MeanKeep(axis))
	variance := d.Square().MeanKeep(axis)
	return d.Mul(variance.AddScalar(layerNormEps).Rsqrt()).Mul(weight).Add(bias)
}

func layerNormOracle(x, w, b *array, axis int) *oracle {
	outer, n, inner := axisOf(x.shape, axis)
	return &oracle{units: outer, size: n * inner, cost: float64(n * inner), unit: func(u int, out []float64) {
		mean, variance := make([]float64, inner), make([]float64, inner)
		columns(n, inner, func(i, j int) { mean[j] += x.at(u*len(out)+i) / float64(n) })
		columns(n, inner, func(i, j int) {
			out[i] = x.at(u*len(out)+i) - mean[j]
			variance[j] += float64(out[i]*out[i]) / float64(n)
		})
		columns(n, inner, func(i, j int) {
			out[i] = float64(out[i]/math.Sqrt(variance[j]+layerNormEps)*w.at(i/inner)) + b.at(i/inner)
		})
	}}
}
