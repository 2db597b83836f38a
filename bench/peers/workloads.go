package main

import (
	"math"
	"math/rand/v2"
)

// A workload is one thing that every contestant computes, of the same inputs.
type workload struct {
	name string
	// about says what is computed, and bound what a good program's time goes to.
	about, bound string
	inputs       func(big shape) []input
	runs         int // in one sample
	// An element may be off by tolerance times what its error is measured against,
	// or times floor where that is more.
	tolerance, floor float64
	oracle           func(in []input) expected
}

type shape []int

func (s shape) len() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// An input is normally distributed around a mean.
type input struct {
	name            string
	shape           shape
	mean, deviation float64
	data            []float32
}

const layerNormEps = 1e-5

var workloads = []workload{
	{"gelu", "x·(1+erf(x/√2))/2, the library's own function", "memory", bigOnly, 1, 1e-5, 1, elementwise(gelu(math.Erf))},
	{"gelu-tanh", "x·(1+tanh(√(2/π)·(x+0.044715·x³)))/2, the library's own function or written out", "memory", bigOnly, 1, 1e-5, 1,
		elementwise(geluTanh)},
	{"gelu-erf", "the first, written out with erf", "memory where it is fused, else a pass over memory for each operation", bigOnly, 1, 1e-5, 1,
		elementwise(gelu(math.Erf))},
	{"gelu-custom", "the same, erf written out as well (Abramowitz and Stegun 7.1.26)", "memory and arithmetic where it is fused, else some 40 passes over memory",
		bigOnly, 1, 1e-5, 1, elementwise(gelu(customErf))},
	{"softmax", "softmax over the last axis", "memory: rows fit caches", bigOnly, 1, 2e-5, 1e-6, softmaxOver(2)},
	{"softmax-middle", "softmax over the axis in the middle", "memory and caches: columns are as long as there are rows", bigOnly, 1, 2e-5, 1e-6, softmaxOver(1)},
	{"layernorm", "layer normalisation of rows with weight and bias", "memory", normed, 1, 1e-5, 1, layerNorm},
	{"sum", "sum of all elements", "reading memory", bigOnly, 1, 1e-6, 1e-30, sumAll},
	{"sum-0", "sum over the first axis", "reading memory", bigOnly, 1, 1e-6, 1e-30, sumFirst},
	{"matmul-256", "product of two matrices of 256×256", "multiply-adds, and the cost of a call", matrices(256), 20, 2e-5, 1, product},
	{"matmul-1024", "product of two matrices of 1024×1024", "multiply-adds", matrices(1024), 1, 2e-5, 1, product},
	{"matmul-2048", "product of two matrices of 2048×2048", "multiply-adds", matrices(2048), 1, 2e-5, 1, product},
	{"chain", "20 operations with scalars on 1000 elements, the result read", "the cost of a call, or of 20", small, 500, 1e-5, 1, chainOf(0)},
	{"chain-vary", "the same, with other scalars each time", "the cost of a call, or of 20", small, 500, 1e-5, 1, chainOf(499)},
}

// defaultShape is that of the large tensor.
var defaultShape = shape{32, 512, 2048}

func bigOnly(big shape) []input { return []input{{name: "x", shape: big, deviation: 2}} }
func small(shape) []input       { return []input{{name: "x", shape: shape{1000}, deviation: 2}} }

func normed(big shape) []input {
	row := shape{big[len(big)-1]}
	return append(bigOnly(big), input{name: "weight", shape: row, mean: 1, deviation: 0.2}, input{name: "bias", shape: row, deviation: 0.5})
}

func matrices(n int) func(shape) []input {
	return func(shape) []input {
		return []input{{name: "a", shape: shape{n, n}, deviation: 1}, {name: "b", shape: shape{n, n}, deviation: 1 / math.Sqrt(float64(n))}}
	}
}

// fill makes the elements, the same in every run of the command.
func (in *input) fill(seed uint64) {
	r := rand.New(rand.NewPCG(seed, uint64(in.shape.len())))
	in.data = make([]float32, in.shape.len())
	for i := range in.data {
		in.data[i] = float32(in.mean + in.deviation*r.NormFloat64())
	}
}
