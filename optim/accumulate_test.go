package optim

import (
	"context"
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// TestAccumulate: parts of a batch, one after another, are as good as the batch.
func TestAccumulate(t *testing.T) {
	for _, record := range []bool{false, true} {
		dev := open(t, "cpu:cache=off,compile=off")
		run := func(parts int) []float64 {
			m := newModel(dev, millrace.Float32)
			m.Mean = nil // of parts it is another one
			var how []StepOption
			if record {
				how = append(how, Record())
			}
			if parts > 1 {
				how = append(how, Accumulate(parts))
			}
			o := SGD(m.params(), LR(0.1))
			s := o.Step(m.loss, how...)
			defer s.Close()
			for i := range 4 {
				in := batch(dev, i, 12)
				for k := range parts {
					n := 12 / parts
					part := []*millrace.Tensor{in[0].Slice(millrace.R(k*n, k*n+n)), in[1].Slice(millrace.R(k*n, k*n+n))}
					before := numbers(t, m.params())
					if _, err := s.Run(context.Background(), part...); err != nil {
						t.Fatal(err)
					}
					if k < parts-1 {
						close(t, "before the last part", numbers(t, m.params()), before, 0)
					}
				}
			}
			if n, err := o.Updates(); n != 4 || err != nil {
				t.Errorf("%d updates, %v", n, err)
			}
			return numbers(t, m.params())
		}
		want := run(1)
		for _, parts := range []int{2, 3, 4} {
			close(t, fmt.Sprintf("%d parts, recorded %v", parts, record), run(parts), want, 1e-5)
		}
	}
}

// TestAccumulateSome: a parameter that only some of the parts use gets what there is, and
// one that none uses stays as it is, decay included.
func TestAccumulateSome(t *testing.T) {
	for _, record := range []bool{false, true} {
		dev := open(t, "cpu:cache=off,compile=off")
		var ps []nn.Named
		for _, name := range []string{"a", "b", "c"} {
			ps = append(ps, nn.Named{Name: name, Param: nn.NewParam(millrace.ScalarOn(dev, float32(1)))})
		}
		how := []StepOption{Accumulate(2)}
		if record {
			how = append(how, Record())
		}
		o := SGD(ps, LR(1), WeightDecay(0.5))
		s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			if in[0].Rank() == 0 {
				return ps[0].In(c).Mul(in[0])
			}
			return ps[1].In(c).Mul(in[0].Sum())
		}, how...)
		defer s.Close()
		one, vector := millrace.ScalarOn(dev, float32(2)), millrace.FromSliceOn(dev, []float32{4, 0})
		want := []float64{1, 1, 1}
		for _, in := range [][2]*millrace.Tensor{{one, vector}, {vector, one}, {one, one}, {vector, vector}, {one, vector}} {
			g := map[bool]float64{}
			for _, x := range in {
				if _, err := s.Run(context.Background(), x); err != nil {
					t.Fatal(err)
				}
				g[x == vector] += float64(values[float32](t, x)[0]) / 2
			}
			for second, sum := range g {
				i := 0
				if second {
					i = 1
				}
				want[i] -= sum + 0.5*want[i]
			}
			close(t, "some", numbers(t, ps), want, 1e-6)
		}
	}
}
