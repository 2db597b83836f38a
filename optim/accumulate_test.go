package optim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/nn"
)

// TestAccumulate: the parts of a batch, one after another, give the update of the whole batch.
func TestAccumulate(t *testing.T) {
	for _, record := range []bool{false, true} {
		dev := open(t, "cpu:cache=off,compile=off")
		run := func(parts int) []float64 {
			m := newModel(dev, millrace.Float32)
			m.Mean = nil // the parts have other means
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

// TestAccumulateSome: a parameter used by only some of the parts gets the sum of those, and one
// used by none stays unchanged, without decay.
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

// TestPartsAndOthers: updates by another step between parts leave the sums unchanged, and parts of
// another number are an error.
func TestPartsAndOthers(t *testing.T) {
	for _, how := range []string{"eager", "recorded", "bound"} {
		dev := open(t, "cpu:cache=off,compile=off")
		p := nn.NewParam(millrace.ScalarOn(dev, float32(0)))
		var opts []StepOption
		if how != "eager" {
			opts = append(opts, Record())
		}
		o := SGD([]nn.Named{{Name: "p", Param: p}}, LR(1))
		loss := func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return p.In(c).Mul(in[0]) }
		parts, plain := o.Step(loss, append(opts, Accumulate(2))...), o.Step(loss, opts...)
		x := millrace.ScalarOn(dev, float32(10))
		alone := func() error { _, err := plain.Run(nil, x); return err }
		if how == "bound" {
			b, err := plain.Bind(x)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			alone = b.Run
		}
		part := func(g float32) {
			t.Helper()
			if _, err := parts.Run(nil, millrace.ScalarOn(dev, g)); err != nil {
				t.Fatal(err)
			}
		}
		want := func(w float32, updates int) {
			t.Helper()
			if v := values[float32](t, p.Tensor())[0]; v != w {
				t.Errorf("%s: %v, want %v", how, v, w)
			}
			if n, err := o.Updates(); n != updates || err != nil {
				t.Errorf("%s: %d updates, want %d: %v", how, n, updates, err)
			}
		}
		for k := range 3 {
			part(2)
			if err := alone(); err != nil {
				t.Fatal(err)
			}
			if err := o.Update([]*millrace.Tensor{millrace.ScalarOn(dev, float32(100))}); err != nil {
				t.Fatal(err)
			}
			want(float32(-113*k-110), 3*k+2)
			if _, err := o.Step(loss, Accumulate(3)).Run(nil, x); err == nil || !strings.Contains(err.Error(), "1 of 2 parts") {
				t.Errorf("%s: parts of three among those of two: %v", how, err)
			}
			part(4)
			want(float32(-113*k-113), 3*k+3)
		}
		three := o.Step(loss, Accumulate(3))
		for range 2 {
			if _, err := three.Run(nil, x); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(t.TempDir(), "file")
		if err := errors.Join(nn.Save(file, o), nn.Load(file, o)); err != nil {
			t.Fatal(err)
		}
		if _, err := parts.Run(nil, x); err == nil || !strings.Contains(err.Error(), "2 of 3 parts") {
			t.Errorf("%s: a part of two, and two are there: %v", how, err)
		}
		if _, err := three.Run(nil, x); err != nil {
			t.Error(err)
		}
		want(-349, 10)
	}
}
