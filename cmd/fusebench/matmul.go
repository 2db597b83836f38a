package main

import (
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// matmulSuite multiplies matrices, alone or followed by a bias and a GELU. A variant is a size,
// 256 or 64x128x32 (rows, summed, columns), and +gelu.
var matmulSuite = &Suite{
	name: "matmul", about: "matmul, alone and followed by bias and GELU",
	variants: always("256", "1024", "2048", "256+gelu", "1024+gelu", "2048+gelu"), free: true, modes: allModes, problem: matmulProblem,
}

func matmulProblem(variant string, _ shape, as *arrays) (*problem, error) {
	size, epilogue, behind := strings.Cut(variant, "+")
	m, k, n, ok := matmulSize(size)
	if !ok || behind && epilogue != "gelu" {
		return nil, usageError("-variants %q: want sizes such as 256 or 64x128x32 (rows, summed, columns), with +gelu or without", variant)
	}
	if err := fitsMemory(shape{m, k}, shape{k, n}, shape{m, n}); err != nil {
		return nil, err
	}
	a, b := as.normal("a", 1, m, k), as.weight("b", k, k, n)
	p := &problem{
		shape: shape{m, k, n}, inputs: []*array{a, b}, flops: 2 * float64(m) * float64(k) * float64(n),
		program: func(x []*millrace.Tensor) *millrace.Tensor { return x[0].MatMul(x[1]) },
		gemm:    &gemm{m, k, n}, oracle: matmulOracle(a, b, nil),
	}
	if behind {
		bias := as.normal("bias", 1, n)
		p.inputs, p.gemm, p.intermediate, p.oracle = append(p.inputs, bias), nil, m*n, matmulOracle(a, b, bias)
		p.program = func(x []*millrace.Tensor) *millrace.Tensor { return x[0].MatMul(x[1]).Add(x[2]).Gelu() }
		p.versus = []versus{{size, func(r *Row, own, other []float64) {
			e := paired.Ratio(own, other)
			r.EpilogueCost, r.EpilogueCostLo, r.EpilogueCostHi = number(e.Mid-1), number(e.Lo-1), number(e.Hi-1)
		}}}
	}
	return p, nil
}

// matmulSize parses a size: 256 or 64x128x32.
func matmulSize(s string) (m, k, n int, ok bool) {
	var sizes []int
	for part := range strings.SplitSeq(s, "x") {
		d, err := strconv.Atoi(part)
		if err != nil || d < 1 || d > maxElements {
			return 0, 0, 0, false
		}
		sizes = append(sizes, d)
	}
	switch len(sizes) {
	case 1:
		return sizes[0], sizes[0], sizes[0], true
	case 3:
		return sizes[0], sizes[1], sizes[2], true
	}
	return 0, 0, 0, false
}

// matmulOracle computes one row of a·b at a time, or of gelu(a·b + bias).
func matmulOracle(a, b, bias *array) *oracle {
	k, n := b.shape[0], b.shape[1]
	return &oracle{units: a.shape[0], size: n, cost: float64(k * n), unit: func(u int, out []float64) {
		for i := range k {
			addRow(out, a.at(u*k+i), b, i*n)
		}
		if bias != nil {
			for j := range out {
				out[j] = gelu64(out[j] + bias.at(j))
			}
		}
	}}
}

// addRow adds a row of b, which starts at from, to out, multiplied by f.
func addRow(out []float64, f float64, b *array, from int) {
	for j := range out {
		out[j] += float64(f * b.at(from+j))
	}
}
