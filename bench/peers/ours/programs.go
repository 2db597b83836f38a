package main

import (
	"math"

	"github.com/millrace-go/millrace"
)

type tensors = []*millrace.Tensor

// programs are the workloads as a user would write them.
var programs = map[string]func(x tensors, step int) *millrace.Tensor{
	"gelu":           func(x tensors, _ int) *millrace.Tensor { return x[0].Gelu() },
	"gelu-tanh":      func(x tensors, _ int) *millrace.Tensor { return x[0].GeluTanh() },
	"gelu-erf":       func(x tensors, _ int) *millrace.Tensor { return gelu((*millrace.Tensor).Erf, x[0]) },
	"gelu-custom":    func(x tensors, _ int) *millrace.Tensor { return gelu(erf, x[0]) },
	"softmax":        func(x tensors, _ int) *millrace.Tensor { return x[0].Softmax(-1) },
	"softmax-middle": func(x tensors, _ int) *millrace.Tensor { return x[0].Softmax(1) },
	"layernorm":      func(x tensors, _ int) *millrace.Tensor { return x[0].LayerNorm(x[1], x[2], 1e-5, -1) },
	"sum":            func(x tensors, _ int) *millrace.Tensor { return x[0].Sum() },
	"sum-0":          func(x tensors, _ int) *millrace.Tensor { return x[0].Sum(0) },
	"matmul-256":     product,
	"matmul-1024":    product,
	"matmul-2048":    product,
	"chain":          func(x tensors, _ int) *millrace.Tensor { return chain(x[0], 0) },
	"chain-vary":     func(x tensors, step int) *millrace.Tensor { return chain(x[0], step) },
}

// reads says whether a workload ends with its result in the program's own memory.
func reads(workload string) bool { return workload == "chain" || workload == "chain-vary" }

func product(x tensors, _ int) *millrace.Tensor { return x[0].MatMul(x[1]) }

func gelu(erf func(*millrace.Tensor) *millrace.Tensor, x *millrace.Tensor) *millrace.Tensor {
	return x.Mul(erf(x.MulScalar(1 / math.Sqrt2)).AddScalar(1)).MulScalar(0.5)
}

// erf is formula 7.1.26 of Abramowitz and Stegun, as fusebench's custom GELU has
// it: evaluated for −x and for x, and chosen by sign.
func erf(x *millrace.Tensor) *millrace.Tensor {
	return millrace.Where(x.GtScalar(0), erfPositive(x), erfPositive(x.Neg()).Neg())
}

func erfPositive(x *millrace.Tensor) *millrace.Tensor {
	t := x.Abs().MulScalar(0.3275911).AddScalar(1).Recip()
	y := t.MulScalar(1.061405429)
	for _, a := range []float64{-1.453152027, 1.421413741, -0.284496736} {
		y = y.AddScalar(a).Mul(t)
	}
	return y.AddScalar(0.254829592).Mul(t).Mul(x.Neg().Mul(x).Exp()).Neg().AddScalar(1)
}

// chain is 20 operations with next to no arithmetic, whose scalars are another
// step's others.
func chain(x *millrace.Tensor, step int) *millrace.Tensor {
	k := float64(step%1000+1) * 1e-6
	for i := range 20 {
		if i%2 == 0 {
			x = x.MulScalar(1 + k*float64(i%7-3))
		} else {
			x = x.AddScalar(k * float64(i+1))
		}
	}
	return x
}
