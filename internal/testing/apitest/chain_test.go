package apitest

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/runtime/null"
)

// chain is a training step written by hand: layers of tanh(x*a+b) with numbers a and b, the sum of
// squares as the loss, its derivatives, and the update.
type chain struct{ a, b []*tensor }

func newChain(p millrace.Place, layers int) *chain {
	c := &chain{}
	for i := range layers {
		c.a = append(c.a, millrace.ScalarOn(p, float32(1+0.01*float64(i))))
		c.b = append(c.b, millrace.ScalarOn(p, float32(0.02*float64(i)-0.3)))
	}
	return c
}

// step makes a step on x, which a scope owns, and returns the loss.
func (c *chain) step(x *tensor) *tensor {
	ys := []*tensor{x}
	for i := range c.a {
		ys = append(ys, ys[i].Mul(c.a[i]).Add(c.b[i]).Tanh())
	}
	last := ys[len(c.a)]
	loss := last.Mul(last).Sum()
	d := last.MulScalar(2)
	for i := len(c.a) - 1; i >= 0; i-- {
		d = d.Mul(ys[i+1].Mul(ys[i+1]).ScalarSub(1))
		da, db, dx := d.Mul(ys[i]).Sum(), d.Sum(), d.Mul(c.a[i])
		c.a[i].Set(c.a[i].Sub(da.MulScalar(1e-6)))
		c.b[i].Set(c.b[i].Sub(db.MulScalar(1e-6)))
		d = dx
	}
	return loss
}

// trainer runs steps in a scope or as a recording.
func (c *chain) trainer(t *testing.T, s *millrace.Stream, x *tensor, recorded bool) (step func()) {
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return []*tensor{c.step(in[0])}, nil
	})
	t.Cleanup(rec.Release)
	return func() {
		var out []*tensor
		var err error
		if recorded {
			out, err = rec.RunWith(nil, millrace.RunOptions{On: s}, x)
		} else {
			err = s.Scope(func(sc *millrace.Scope) error {
				out = append(out, sc.Keep(c.step(x.To(sc))))
				return nil
			})
		}
		if err == nil {
			err = out[0].Eval()
			out[0].Release()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestChain: a chain of thirty layers with backward and update is one segment in a scope and in a
// Recording, whatever the cap of eager code. It writes about as much as backward needs, needs about
// that much memory, and reaches a steady state.
func TestChain(t *testing.T) {
	const n, layers, steps = 1 << 16, 30, 20
	for _, recorded := range []bool{false, true} {
		var unfused float64
		for _, spec := range []string{"fusion=off", "", "queue=1", "queue=8", "queue=64", "queue=256", "fusion=greedy", "explore=wait"} {
			t.Run(fmt.Sprintf("recorded=%v,%s", recorded, spec), func(t *testing.T) {
				dev := openSpec(t, "null:"+spec)
				x := millrace.FromSliceOn(dev, make([]float32, n))
				s := dev.NewStream()
				step := newChain(dev, layers).trainer(t, s, x, recorded)
				var was millrace.Stats
				for i := range steps {
					if i == 10 {
						was = dev.Stats()
						dev.ResetPeak()
					}
					step()
				}
				now := dev.Stats()
				moved := float64(now.Runtime.BytesRead+now.Runtime.BytesWritten-was.Runtime.BytesRead-was.Runtime.BytesWritten) / (steps - 10) / 4 / n
				peak := float64(now.Runtime.PeakBytes) / 4 / n
				if now.Explorations != was.Explorations || now.Recomputes > 0 {
					t.Errorf("%d explorations after step 10, %d recomputations", now.Explorations-was.Explorations, now.Recomputes)
				}
				switch spec {
				case "queue=1": // op by op
					return
				case "fusion=off":
					unfused = moved
				default:
					if moved > 0.4*unfused {
						t.Errorf("a step moves %.0f n, %.0f n unfused", moved, unfused)
					}
				}
				if peak > 34 {
					t.Errorf("a step needs the memory of %.0f n", peak)
				}
				if got := now.Segments - was.Segments; got != steps-10 {
					t.Errorf("%d steps are %d segments", steps-10, got)
				}
			})
		}
	}
}
