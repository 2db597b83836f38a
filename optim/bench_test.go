package optim

import (
	"context"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
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
