package optim_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// Linear regression: the smallest model that learns.
func ExampleSGD() {
	model := nn.NewLinear(1, 1, nn.Seed(1))
	opt := optim.SGD(nn.Params(model), optim.LR(0.1), optim.Momentum(0.9))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.MSE(model.Forward(c, in[0]), in[1])
	})
	defer step.Close()
	x := millrace.FromSlice([]float32{0, 1, 2}, 3, 1)
	y := x.MulScalar(2).AddScalar(1)
	for range 200 {
		if _, err := step.Run(context.Background(), x, y); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%.3f\n", model.Forward(nn.Eval(), millrace.FromSlice([]float32{10}, 1, 1)))
	// Output: [[21.000]]
}

// Gradients that the program has computed itself.
func ExampleOptimizer_Update() {
	model := nn.NewLinear(2, 1, nn.NoBias(), nn.Weights(nn.InitConstant(1)))
	opt := optim.SGD(nn.Params(model), optim.LR(0.5))
	gradient := millrace.FromSlice([]float32{1, 2}, 1, 2)
	err := opt.Update([]*millrace.Tensor{gradient})
	fmt.Println(model.Weight.Tensor(), err)
	// Output: [[0.5 0. ]] <nil>
}

// Biases are not decayed.
func ExampleGroup() {
	model := nn.NewLinear(4, 2, nn.Seed(1))
	isBias := func(name string) bool { return strings.HasSuffix(name, "bias") }
	opt := optim.AdamW(nn.Params(model), optim.WeightDecay(0.01), optim.Group(isBias, optim.WeightDecay(0)))
	n, err := opt.Updates()
	fmt.Println(n, err)
	// Output: 0 <nil>
}

// A rate that rises for ten updates and then falls along a cosine.
func ExampleWarmup() {
	rate := optim.Warmup(10, 0, optim.Cosine(0.1, 100))
	for _, update := range []int{0, 5, 10, 60, 110} {
		fmt.Printf("%.3f ", rate(update))
	}
	fmt.Println()
	// Output: 0.000 0.050 0.100 0.050 0.000
}

// One update from the mean gradient of four batches.
func ExampleAccumulate() {
	model := nn.NewLinear(1, 1, nn.Seed(1))
	opt := optim.SGD(nn.Params(model), optim.LR(0.1))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return model.Forward(c, in[0]).Square().Mean()
	}, optim.Accumulate(4))
	defer step.Close()
	for i := range 8 {
		if _, err := step.Run(context.Background(), millrace.Full(millrace.Float32, float64(i), 2, 1)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(opt.Updates())
	// Output: 2 <nil>
}

// A bound step has its inputs in fixed memory. The program writes each batch there.
func ExampleStep_Bind() {
	model := nn.NewLinear(1, 1, nn.Seed(1))
	opt := optim.SGD(nn.Params(model), optim.LR(0.1))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.MSE(model.Forward(c, in[0]), in[1])
	}, optim.Record())
	defer step.Close()
	bound, err := step.Bind(millrace.Zeros(millrace.Float32, 2, 1), millrace.Zeros(millrace.Float32, 2, 1))
	if err != nil {
		log.Fatal(err)
	}
	defer bound.Close()
	for i := range 300 {
		x := float32(i%5) / 5
		if err := optim.SetInput(bound, 0, x, -x); err != nil {
			log.Fatal(err)
		}
		if err := optim.SetInput(bound, 1, 3*x, -3*x); err != nil {
			log.Fatal(err)
		}
		if err := bound.Run(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%.2f\n", model.Weight.Tensor())
	// Output: [[3.00]]
}
