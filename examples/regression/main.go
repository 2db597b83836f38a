// Regression fits a linear model by gradient descent with package autodiff, and a logistic one
// with Adam of package optim.
//
//	go run ./examples/regression
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

func main() {
	weights, err := linear(1000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("y = %.3f·x + 1, where 2, -3 and 0.5 were sought\n", weights)
	right, err := logistic(context.Background(), 1000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.1f %% of the points are on the right side of the line\n", 100*right)
}

// linear finds the weights of n noisy points by gradient descent on the mean squared error.
func linear(n int) (*millrace.Tensor, error) {
	sought := millrace.FromSlice([]float32{2, -3, 0.5}, 3, 1)
	x := millrace.Normal(millrace.Float32, 1, n, 3)
	y := x.MatMul(sought).AddScalar(1).Add(millrace.Normal(millrace.Float32, 2, n, 1).MulScalar(0.1))
	w := autodiff.Watch(millrace.Zeros(millrace.Float32, 3, 1))
	for range 100 {
		loss := x.MatMul(w).AddScalar(1).Sub(y).Square().Mean()
		d, err := autodiff.Grad(loss, w)
		if err != nil {
			return nil, err
		}
		w = autodiff.Watch(autodiff.Detach(w).Sub(d[0].MulScalar(0.2)))
	}
	return autodiff.Detach(w).Reshape(3), nil
}

// logistic learns on which side of a line points lie, and returns of which part of new
// ones it knows that.
func logistic(ctx context.Context, n int) (float64, error) {
	model := nn.NewLinear(2, 1, nn.Seed(1))
	adam := optim.Adam(nn.Params(model), optim.LR(0.05))
	step := adam.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.BCEWithLogits(model.Forward(c, in[0]), in[1])
	}, optim.Record())
	defer step.Close()
	x, y := sides(3, n)
	for range 200 {
		if _, err := step.Run(ctx, x, y); err != nil {
			return 0, err
		}
	}
	x, y = sides(4, n)
	says := model.Forward(nn.Eval(), x).GtScalar(0)
	right, err := millrace.Item[float32](says.Eq(y.GtScalar(0.5)).Cast(millrace.Float32).Mean())
	return float64(right), err
}

// sides are points of the plane, and 1 for those above the line y = 0.5·x + 0.2.
func sides(seed uint64, n int) (x, y *millrace.Tensor) {
	x = millrace.Normal(millrace.Float32, seed, n, 2)
	first, second := x.Slice(millrace.All, millrace.R(0, 1)), x.Slice(millrace.All, millrace.R(1, 2))
	return x, second.Sub(first.MulScalar(0.5)).GtScalar(0.2).Cast(millrace.Float32)
}
