package optim

import (
	"context"
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// TestTraining: a network that learns has PyTorch's losses and weights.
func TestTraining(t *testing.T) {
	type numbersOf struct{ Losses, End []float64 }
	var ref struct {
		Start, X         []float64
		Y                []int32
		Float32, Float64 numbersOf
	}
	readJSON(t, "testdata/training.json", &ref)
	dev := open(t, "cpu:cache=off,compile=off")
	for _, dt := range []millrace.DType{millrace.Float32, millrace.Float64} {
		for _, how := range [][]StepOption{nil, {Record()}} {
			want, tol := ref.Float32, 2e-5
			if dt == millrace.Float64 {
				want, tol = ref.Float64, 1e-11
			}
			model := struct{ A, B *nn.Linear }{nn.NewLinear(5, 8, nn.On(dev), nn.DType(dt)), nn.NewLinear(8, 3, nn.On(dev), nn.DType(dt))}
			params := nn.Params(&model)
			for i, x := range tensors(dev, dt, [][]int{{8, 5}, {8}, {3, 8}, {3}}, ref.Start) {
				params[i].Tensor().Set(x)
				x.Release()
			}
			x := millrace.FromSliceOn(dev, ref.X, 7, 5).Cast(dt)
			y := millrace.FromSliceOn(dev, ref.Y)
			s := AdamW(params, Schedule(Cosine(0.1, 20)), WeightDecay(0.1), ClipNorm(0.2)).Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
				return nn.CrossEntropy(model.B.Forward(c, model.A.Forward(c, in[0]).Tanh()), in[1])
			}, how...)
			defer s.Close()
			var losses []float64
			for range want.Losses {
				loss, err := s.Run(context.Background(), x, y)
				if err != nil {
					t.Fatal(err)
				}
				losses = append(losses, values[float64](t, loss.Cast(millrace.Float64))[0])
			}
			what := fmt.Sprintf("%v, recorded %v: ", dt, how != nil)
			close(t, what+"losses", losses, want.Losses, tol)
			close(t, what+"weights", numbers(t, params), want.End, tol)
		}
	}
}
