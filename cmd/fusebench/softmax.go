package main

import (
	"math"

	"github.com/millrace-go/millrace"
)

// softmaxSuite is the softmax of rows, along the last axis and along one in the middle.
var softmaxSuite = &Suite{
	name: "softmax", about: "softmax along the last and a middle axis, and as exp of log-softmax", shape: shape{32, 512, 2048}, sizes: "of the tensor",
	variants: always("last", "middle", "logexp"), modes: bothModes, problem: softmaxProblem,
}

func softmaxProblem(variant string, s shape, as *arrays) (*problem, error) {
	x, axis := as.normal("x", 2, s...), rowAxis(variant, s)
	p := &problem{shape: s, inputs: []*array{x}, oracle: softmaxOracle(x, axis)}
	p.program = func(x []*millrace.Tensor) *millrace.Tensor { return softmax(x[0], axis) }
	if variant == "logexp" {
		p.program = func(x []*millrace.Tensor) *millrace.Tensor { return x[0].LogSoftmax(axis).Exp() }
	}
	return p, nil
}

// rowAxis returns the axis that a variant works along.
func rowAxis(variant string, s shape) int {
	if variant == "middle" {
		return (len(s) - 1) / 2
	}
	return len(s) - 1
}

// softmax is the softmax as a program would write it.
func softmax(x *millrace.Tensor, axis int) *millrace.Tensor {
	e := x.Sub(x.MaxKeep(axis)).Exp()
	return e.Div(e.SumKeep(axis))
}

func softmaxOracle(x *array, axis int) *oracle {
	outer, n, inner := axisOf(x.shape, axis)
	return &oracle{units: outer, size: n * inner, cost: float64(n * inner), unit: func(u int, out []float64) {
		top, sum := make([]float64, inner), make([]float64, inner)
		for j := range top {
			top[j] = math.Inf(-1)
		}
		columns(n, inner, func(i, j int) { top[j] = max(top[j], x.at(u*len(out)+i)) })
		columns(n, inner, func(i, j int) {
			out[i] = math.Exp(x.at(u*len(out)+i) - top[j])
			sum[j] += out[i]
		})
		columns(n, inner, func(i, j int) { out[i] /= sum[j] })
	}}
}
