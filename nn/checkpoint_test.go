package nn_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
)

// TestCheckpointDropout checks that autodiff.Checkpoint around a layer that draws is an error, and
// that nn.Checkpoint drops the same elements in both runs.
func TestCheckpointDropout(t *testing.T) {
	r := nn.NewRandom(1)
	drop := nn.NewDropout(0.5)
	x := autodiff.Watch(millrace.UniformOn(device(t).NewStream(), millrace.Float32, 1, 64))
	pass := func() *nn.Ctx { return nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Random: r}) }

	c := pass()
	y := autodiff.Checkpoint(func(in []*tensor) []*tensor { return []*tensor{drop.Forward(c, in[0])} }, x)[0]
	if _, err := autodiff.Grad(y.Sum(), x); !errors.Is(err, autodiff.ErrGraph) {
		t.Errorf("autodiff.Checkpoint: %v", err)
	}
	y = nn.Checkpoint(pass(), func(c *nn.Ctx, in []*tensor) []*tensor { return []*tensor{drop.Forward(c, in[0])} }, x)[0]
	g, err := autodiff.Grad(y.Sum(), x)
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	d := values(t, g[0])
	for i, v := range values(t, y) {
		if v == 0 {
			dropped++
		}
		if (v == 0) != (d[i] == 0) {
			t.Fatalf("element %d: %v, its derivative %v", i, v, d[i])
		}
	}
	if dropped == 0 || dropped == 64 {
		t.Errorf("%d of 64 were dropped", dropped)
	}
}

// TestCheckpointTied checks that a weight used inside a Checkpoint and after it has the same
// gradient as without a Checkpoint, in every compute dtype.
func TestCheckpointTied(t *testing.T) {
	for _, dt := range []millrace.DType{millrace.Invalid, millrace.BFloat16} {
		var got [2]string
		for k := range got {
			s := device(t).NewStream()
			l := nn.NewLinear(4, 4, nn.On(s), nn.Seed(3))
			c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, DType: dt})
			x := millrace.UniformOn(s, millrace.Float32, 1, 2, 4)
			f := func(c *nn.Ctx, in []*tensor) []*tensor { return []*tensor{l.Forward(c, in[0]).Tanh()} }
			var y *tensor
			if k == 0 {
				y = f(c, []*tensor{x})[0]
			} else {
				y = nn.Checkpoint(c, f, x)[0]
			}
			loss := l.Forward(c, y).Cast(millrace.Float32).Square().Sum()
			_, ws := c.Watched()
			g, err := autodiff.Grad(loss, ws...)
			if err != nil {
				t.Fatal(dt, err)
			}
			for _, d := range append(g, loss) {
				got[k] += fmt.Sprint(values(t, d))
			}
		}
		if dt == millrace.Invalid && got[0] != got[1] {
			t.Errorf("%v: %s, without Checkpoint %s", dt, got[1], got[0])
		}
	}
}
