package optim_test

import (
	"context"
	"fmt"
	"log"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// A network learns exclusive or.
func Example() {
	seed := nn.Seed(4)
	model := struct{ Hidden, Out *nn.Linear }{nn.NewLinear(2, 8, seed), nn.NewLinear(8, 1, seed)}
	forward := func(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
		return model.Out.Forward(c, model.Hidden.Forward(c, x).Tanh())
	}
	opt := optim.AdamW(nn.Params(model), optim.Schedule(optim.Cosine(0.1, 100)), optim.ClipNorm(1))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return forward(c, in[0]).Sub(in[1]).Square().Mean()
	}, optim.Record())
	defer step.Close()

	x := millrace.FromSlice([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2)
	y := millrace.FromSlice([]float32{0, 1, 1, 0}, 4, 1)
	for range 100 {
		if _, err := step.Run(context.Background(), x, y); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(forward(nn.Eval(), x).Round().AddScalar(0).Reshape(4))
	// Output: [0. 1. 1. 0.]
}
