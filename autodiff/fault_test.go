package autodiff_test

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/fault"
)

// TestAllocationFails: whichever allocation fails, in the forward or the backward pass, a step
// gives an error or the right derivatives, and leaves no memory behind.
func TestAllocationFails(t *testing.T) {
	defer fault.Reset()
	var d *millrace.Device
	var s *millrace.Stream
	var w, x *T
	start := func() { // a new device, because memory that a device has pooled is not allocated again
		d = open(t, "cpu")
		s = d.NewStream()
		w = autodiff.Watch(millrace.UniformOn(s, millrace.Float64, 1, 40, 40))
		x = millrace.UniformOn(s, millrace.Float64, 2, 40, 40)
		if err := errorOf(w.Eval(), x.Eval(), s.Sync(nil)); err != nil {
			t.Fatal(err)
		}
	}
	step := func() (v []float64, err error) {
		err = s.Scope(func(sc *millrace.Scope) error {
			h := autodiff.Checkpoint(func(in []*T) []*T { return []*T{in[0].MatMul(w).Tanh()} }, x.To(sc))[0]
			if err := h.Eval(); err != nil {
				return err
			}
			y := autodiff.Custom(func(in []*T) []*T { return []*T{in[0].Exp()} },
				func(in, out, d []*T) []*T { return []*T{d[0].Mul(out[0])} }, h.Sort(1).MatMul(w))[0]
			loss := y.Softmax(1).CumSum(0).Sum()
			if err := loss.Eval(); err != nil {
				return err
			}
			g, err := autodiff.Grad(loss, w)
			if err != nil {
				return err
			}
			v, err = millrace.Values[float64](g[0])
			return err
		})
		s.Sync(nil)
		return v, err
	}
	start()
	want, err := step()
	if err != nil {
		t.Fatal(err)
	}
	failures := 0
	for pass := range 30 {
		start()
		before := d.Stats().LiveBytes
		fault.SetAfter(fault.Alloc, pass, -1)
		got, err := step()
		fault.Reset()
		switch {
		case err != nil:
			failures++
		case !slices.Equal(got, want):
			t.Fatalf("allocation %d failed, and the derivatives are others", pass)
		}
		if now := d.Stats().LiveBytes; now != before {
			t.Fatalf("allocation %d failed: %d live bytes, %d before", pass, now, before)
		}
		if got, err := step(); err != nil || !slices.Equal(got, want) {
			t.Errorf("after allocation %d failed: %v", pass, err)
		}
		d.Close()
	}
	if failures < 4 {
		t.Errorf("%d steps failed", failures)
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
