package optim

import (
	"context"
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	"github.com/millrace-go/millrace/nn"
)

// BenchmarkStep times a recorded step of a tiny network, and the same Recording without a Step. The
// difference is the cost of Step.
func BenchmarkStep(b *testing.B) {
	dev := open(b, "cpu:cache=off,compile=off,threads=1")
	in := batch(dev, 0, 1)
	for _, x := range in {
		x.Eval()
	}
	b.Run("step", func(b *testing.B) {
		m := newModel(dev, millrace.Float32)
		m.Mean = nil
		s := SGD(m.params(), LR(0.01)).Step(m.loss, Record())
		defer s.Close()
		b.ReportAllocs()
		for b.Loop() {
			loss, err := s.Run(context.Background(), in...)
			if err != nil {
				b.Fatal(err)
			}
			loss.Release()
		}
	})
	b.Run("by hand", func(b *testing.B) {
		m := newModel(dev, millrace.Float32)
		m.Mean = nil
		rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			var loss *millrace.Tensor
			to := map[*nn.Param]*millrace.Tensor{}
			err := sc.Scope(func(inner *millrace.Scope) error {
				c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Scope: inner})
				loss = m.loss(c, []*millrace.Tensor{in[0].To(inner), in[1].To(inner)})
				params, handles := c.Watched()
				grads, err := autodiff.Grad(loss, handles...)
				if err != nil {
					return err
				}
				for i, p := range params {
					to[p] = inner.Keep(handles[i].Sub(grads[i].MulScalar(0.01)))
				}
				loss = inner.Keep(autodiff.Detach(loss))
				return c.Commit()
			})
			for p, t := range to {
				p.Tensor().Set(t)
			}
			return []*millrace.Tensor{loss}, err
		})
		defer rec.Release()
		b.ReportAllocs()
		for b.Loop() {
			out, err := rec.Run(nil, in...)
			if err != nil {
				b.Fatal(err)
			}
			out[0].Release()
		}
	})
}

// BenchmarkAcross runs recorded steps of an MLP of 1.1 million parameters on two ranks that are
// goroutines, with AdamW's state on each rank, or divided.
func BenchmarkAcross(b *testing.B) {
	for _, sharded := range []bool{false, true} {
		b.Run(fmt.Sprintf("sharded=%v", sharded), func(b *testing.B) {
			err := local.Run(context.Background(), 2, dist.Options{}, func(ctx context.Context, w *dist.World) error {
				dev, err := millrace.Open("cpu:threads=1,cache=off,explore=wait")
				if err != nil {
					return err
				}
				defer dev.Close()
				on := dev.NewStream()
				m := nn.NewSequential(nn.NewLinear(256, 1024, nn.On(on), nn.Seed(1)), nn.ReLU{}, nn.NewLinear(1024, 768, nn.On(on), nn.Seed(2)), nn.ReLU{}, nn.NewLinear(768, 10, nn.On(on), nn.Seed(3)))
				s := AdamW(nn.Params(m)).Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
					return nn.CrossEntropy(m.Forward(c, in[0]), in[1])
				}, Record(), On(on), Across(w, Ranks{Sharded: sharded, SameEvery: -1}))
				defer s.Close()
				x, y := millrace.NormalOn(on, millrace.Float32, 1, 32, 256), millrace.ZerosOn(on, millrace.Int32, 32)
				run := func() error {
					loss, err := s.Run(ctx, x, y)
					if err != nil {
						return err
					}
					defer loss.Release()
					return loss.Eval()
				}
				for range 20 {
					if err := run(); err != nil {
						return err
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 0 {
					b.ResetTimer()
				}
				for range b.N {
					if err := run(); err != nil {
						return err
					}
				}
				return w.Barrier(ctx)
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
