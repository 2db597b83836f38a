package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
)

// reduceSuite reduces the whole tensor, and each of its axes.
var reduceSuite = &Suite{
	name: "reduce", about: "sum, max and mean of a tensor and of each axis, against reading it", shape: shape{32, 512, 2048}, sizes: "of the tensor",
	variants: reduceVariants, modes: bothModes, problem: reduceProblem,
}

// reduceVariants are sum, max and mean of the whole tensor, and those of each axis: sum-0 and so on.
func reduceVariants(s shape) []string {
	var names []string
	for _, f := range []string{"sum", "max", "mean"} {
		names = append(names, f)
		for axis := range s {
			names = append(names, sized(f, axis))
		}
	}
	return names
}

func reduceProblem(variant string, s shape, as *arrays) (*problem, error) {
	name, axisText, one := strings.Cut(variant, "-")
	f := map[string]func(x *millrace.Tensor, axes ...int) *millrace.Tensor{
		"sum": (*millrace.Tensor).Sum, "max": (*millrace.Tensor).Max, "mean": (*millrace.Tensor).Mean,
	}[name]
	x := as.normal("x", 2, s...)
	p := &problem{shape: s, inputs: []*array{x}, reads: true}
	outer, n, inner, axes := 1, s.len(), 1, []int(nil)
	if one {
		axis, err := strconv.Atoi(axisText)
		if err != nil {
			return nil, err
		}
		outer, n, inner = axisOf(s, axis)
		axes = []int{axis}
	}
	p.oracle = reduceOracle(x, name, outer, n, inner)
	p.program = func(x []*millrace.Tensor) *millrace.Tensor { return f(x[0], axes...) }
	return p, nil
}

func reduceOracle(x *array, name string, outer, n, inner int) *oracle {
	return &oracle{units: outer, size: inner, cost: float64(n * inner), unit: func(u int, out []float64) {
		if name == "max" {
			for j := range out {
				out[j] = math.Inf(-1)
			}
		}
		for i := range n {
			row := (u*n + i) * inner
			for j := range out {
				if v := x.at(row + j); name != "max" {
					out[j] += v
				} else {
					out[j] = max(out[j], v)
				}
			}
		}
		if name == "mean" {
			for j := range out {
				out[j] /= float64(n)
			}
		}
	}}
}
