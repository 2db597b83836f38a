package main

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// mlpSuite is the two layers of a transformer's block, x·W1+b1 → GELU → ·W2+b2; its two products
// alone; and a deeper network, which shows how much memory it needs.
var mlpSuite = &Suite{
	name: "mlp", about: "two layers with GELU between, its matmuls alone, and four layers", shape: shape{512, 1024, 4096}, sizes: "rows,features,hidden",
	variants: always("mlp", "matmuls", "4-layer"), modes: allModes, problem: mlpProblem,
}

func mlpProblem(variant string, s shape, as *arrays) (*problem, error) {
	rows, width, hidden := s[0], s[1], s[2]
	if err := fitsMemory(shape{rows, width}, shape{rows, hidden}, shape{width, hidden}, shape{width, width}); err != nil {
		return nil, err
	}
	layers := []int{width, hidden, width}
	if variant == "4-layer" {
		// All layers have one width. While a layer runs, its input and its output are live; the
		// output of the last layer is the result.
		layers = []int{width, width, width, width, width}
	}
	p := &problem{shape: s, inputs: []*array{as.normal("x", 1, rows, width)}, intermediate: rows * layers[1]}
	for i, in := range layers[:len(layers)-1] {
		out := layers[i+1]
		p.inputs = append(p.inputs, as.weight(sized("w", i), in, in, out))
		if variant != "matmuls" {
			p.inputs = append(p.inputs, as.normal(sized("b", i), 0.5, out))
		}
		p.flops += 2 * float64(rows) * float64(in) * float64(out)
	}
	if variant == "matmuls" {
		p.program = func(x []*millrace.Tensor) *millrace.Tensor { return x[0].MatMul(x[1]).MatMul(x[2]) }
		p.oracle = mlpOracle(p.inputs, 1, false)
		return p, nil
	}
	p.program, p.oracle = mlp, mlpOracle(p.inputs, 2, true)
	if variant == "mlp" {
		p.versus = []versus{{"matmuls", func(r *Row, own, other []float64) {
			e := paired.Ratio(other, own)
			r.MatMulShare, r.MatMulShareLo, r.MatMulShareHi = number(e.Mid), number(e.Lo), number(e.Hi)
		}}}
	}
	return p, nil
}

// mlp applies layers to x; each has a weight and a bias.
func mlp(x []*millrace.Tensor) *millrace.Tensor {
	y := x[0]
	for i := 1; i < len(x); i += 2 {
		if i > 1 {
			y = y.Gelu()
		}
		y = y.MatMul(x[i]).Add(x[i+1])
	}
	return y
}

// mlpOracle computes one row at a time. A layer has step arrays: a weight and perhaps a bias.
// active says that there is a GELU between layers.
func mlpOracle(in []*array, step int, active bool) *oracle {
	x, last := in[0], in[len(in)-step]
	cost := 0.0
	for i := 1; i < len(in); i += step {
		cost += float64(in[i].shape.len())
	}
	return &oracle{units: x.shape[0], size: last.shape[1], cost: cost, unit: func(u int, out []float64) {
		row := make([]float64, x.shape[1])
		for i := range row {
			row[i] = x.at(u*len(row) + i)
		}
		for i := 1; i < len(in); i += step {
			next := make([]float64, in[i].shape[1])
			for k, v := range row {
				if active && i > 1 {
					v = gelu64(v)
				}
				addRow(next, v, in[i], k*len(next))
			}
			if step > 1 {
				addRow(next, 1, in[i+1], 0)
			}
			row = next
		}
		copy(out, row)
	}}
}
