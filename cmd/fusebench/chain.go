package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
)

// chainSuite alternates MulScalar and AddScalar. It has next to no arithmetic, so its time is the
// cost of an operation itself.
func chainSuite(ops int) *Suite {
	return &Suite{
		name: "chain", about: "a chain of operations on a small tensor", shape: shape{1000}, sizes: "of the tensor", variants: always(fmt.Sprint(ops)),
		problem: func(_ string, size shape, as *arrays) (*problem, error) {
			x := as.normal("x", 2, size...)
			return &problem{
				shape: size, inputs: []*array{x}, oracle: elementwise(x, func(x float64) float64 { return chain64(x, ops) }),
				program: func(x []*millrace.Tensor) *millrace.Tensor { return chain(x[0], ops, 0) },
			}, nil
		},
	}
}

// chain64 computes the first step in float64.
func chain64(x float64, ops int) float64 {
	for i := range ops {
		if s := chainScalar(i, 0); i%2 == 0 {
			x *= s
		} else {
			x += s
		}
	}
	return x
}

// chain applies ops operations whose scalars depend on the step. No two steps compute the same,
// but no step has operations that are new to the engine.
func chain(x *millrace.Tensor, ops, step int) *millrace.Tensor {
	for i := range ops {
		if s := chainScalar(i, step); i%2 == 0 {
			x = x.MulScalar(s)
		} else {
			x = x.AddScalar(s)
		}
	}
	return x
}

func chainScalar(i, step int) float64 {
	k := float64(step%1000+1) * 1e-6
	if i%2 == 0 {
		return 1 + k*float64(i%7-3)
	}
	return k * float64(i+1)
}

// goChain computes the same in plain Go: a loop for each operation, into slices that were
// allocated before.
func goChain(dst, x []float32, ops, step int) {
	from := x
	for i := range ops {
		if s := float32(chainScalar(i, step)); i%2 == 0 {
			for j, v := range from {
				dst[j] = v * s
			}
		} else {
			for j, v := range from {
				dst[j] = v + s
			}
		}
		from = dst
	}
}

func setupChain() ([]cli.Flag, action) {
	c := &config{dtype: dtype{millrace.Float32}, modes: list{fused, unfused}}
	var ops, n int
	flags := slices.Concat(c.targetFlags(), c.timingFlags(), []cli.Flag{
		&cli.IntFlag{Name: "ops", Value: 20, Destination: &ops, Config: decimal, Validator: from(1, maxOps), Usage: "`operations` in the chain"},
		&cli.IntFlag{Name: "n", Value: 1000, Destination: &n, Config: decimal, Validator: from(1, maxSize), Usage: "`elements` of the tensor"},
	})
	return flags, func(io streams, args []string) error {
		if c.dtype.DType != millrace.Float32 {
			return usageError("chain runs float32 only")
		}
		c.shape = shape{n}
		if err := c.checkTiming(args); err != nil {
			return err
		}
		return timeChain(c, ops, io)
	}
}
