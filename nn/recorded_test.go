package nn_test

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
)

// TestRecorded: a training step with any layer is recorded once and then replayed. A layer that
// kept a handle of a weight would force a new recording each time.
func TestRecorded(t *testing.T) {
	r := readReference(t, "layers")
	for _, name := range r.cases() {
		own, eval := strings.CutSuffix(name, "_eval")
		module, f := layerCases[strings.TrimSuffix(own, "_train")]()
		if eval || len(nn.Params(module)) == 0 {
			continue
		}
		for _, dt := range []millrace.DType{millrace.Invalid, millrace.BFloat16} {
			step := func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
				c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Scope: sc, DType: dt})
				y := f(c, in)[0]
				if !y.DType().IsFloat() {
					return nil, y.Err()
				}
				loss := y.Cast(millrace.Float32).Square().Mean()
				ps, handles := c.Watched()
				grads, err := autodiff.Grad(loss, handles...)
				if err != nil {
					return nil, err
				}
				if err := c.Commit(); err != nil {
					return nil, err
				}
				for i, p := range ps {
					p.Tensor().Set(p.Tensor().Sub(grads[i]))
				}
				return []*tensor{loss}, nil
			}
			in := r.list(name, "in")
			for _, x := range in {
				if err := x.Eval(); err != nil {
					t.Fatal(err)
				}
			}
			rec := millrace.NewRecording(step)
			before := device(t).Stats()
			for range 3 {
				if _, err := rec.Run(nil, in...); err != nil {
					t.Fatalf("%s, %v: %v", name, dt, err)
				}
			}
			if n := device(t).Stats().Recordings - before.Recordings; n != 1 {
				t.Errorf("%s, %v: recorded %d times", name, dt, n)
			}
			rec.Release()
		}
	}
}
