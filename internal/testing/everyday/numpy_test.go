package everyday

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/devicetest"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
	"github.com/millrace-go/millrace/internal/testing/optable"
	_ "github.com/millrace-go/millrace/runtime/opengl"
	_ "github.com/millrace-go/millrace/runtime/vulkan"
	_ "github.com/millrace-go/millrace/runtime/webgpu"
)

var open = devicetest.Open

// specs are the devices of the cases. All CPU devices have the first one's bits.
var specs = []string{"cpu", "cpu:fusion=off,compile=off", "webgpu", "opengl", "vulkan"}

func held(d *millrace.Device, c *given) bool {
	for _, a := range slices.Concat(c.In, c.Out) {
		if !d.Supports(a.Type()) {
			return false
		}
	}
	return true
}

// TestNumPy runs all cases alone, and between neighbours that they fuse with: an op computes the
// operands, and another op follows. Doubling and halving change no digit of a float.
func TestNumPy(t *testing.T) {
	all := cases(t)
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			d := open(t, spec)
			gpu := !strings.HasPrefix(spec, "cpu")
			ran := map[string]bool{}
			for i := range all {
				c := &all[i]
				p := call(t, c)
				if !held(d, c) {
					continue
				}
				ran[c.Op] = true
				tol := c.Tol
				if gpu && tol > 0 {
					tol = max(16*tol, 1e-5)
				}
				run(t, d, c, p, tol)
			}
			for _, o := range optable.All() {
				for _, p := range o.Peers {
					if !ran[p.Name] {
						t.Errorf("no case of %s ran", p.Name)
					}
				}
			}
			if n := d.Stats().Fallbacks; n != 0 {
				t.Errorf("%d fallbacks", n)
			}
		})
	}
}

func run(t *testing.T, d *millrace.Device, c *given, f optable.Peer, tol float64) {
	t.Helper()
	err := d.Scope(func(sc *millrace.Scope) error {
		var in, neighbours []*tensor
		for _, a := range c.In {
			x := tensorOf(t, a, sc)
			in = append(in, x)
			neighbours = append(neighbours, before(x))
		}
		got := f.Call(sc, c, in)
		compare(t, c, got, tol, 1)
		for _, x := range in {
			x.Eval()
		}
		var wide []*tensor
		for _, r := range f.Call(sc, c, neighbours) {
			wide = append(wide, behind(r))
		}
		compare(t, c, wide, tol, 2)
		return nil
	})
	if err == nil {
		err = d.Sync(context.Background())
	}
	if err != nil {
		t.Errorf("%v: %v", c, err)
	}
}

// before computes x by an op that fuses with the next op.
func before(x *tensor) *tensor {
	switch {
	case x.DType() == millrace.Bool:
		return x.Not().Not()
	case x.DType().IsFloat():
		half := x.MulScalar(0.5)
		half.Eval()
		return half.MulScalar(2)
	}
	less := x.SubScalar(1)
	less.Eval()
	return less.AddScalar(1)
}

// behind doubles floats, and passes others through an op that does not change them.
func behind(x *tensor) *tensor {
	switch {
	case x.DType() == millrace.Bool:
		return x.Not().Not()
	case x.DType().IsFloat():
		return x.MulScalar(2)
	}
	return x.AddScalar(1).SubScalar(1)
}

// TestFused checks the number of kernels of ops together with their neighbours.
func TestFused(t *testing.T) {
	d := open(t, "cpu:threads=1,compile=off,explore=wait")
	x := millrace.NormalOn(d, millrace.Float32, 1, 64, 64)
	v := millrace.NormalOn(d, millrace.Float32, 2, 64)
	if err := errors.Join(x.Eval(), v.Eval()); err != nil {
		t.Fatal(err)
	}
	for _, c := range kernels() {
		err := d.Scope(func(sc *millrace.Scope) error {
			run := func() (int64, error) {
				n := d.Stats().Kernels
				err := c.Call(sc, func() *tensor { return x.To(sc).MulScalar(2) }, func() *tensor { return v.To(sc).AddScalar(1) }).MulScalar(3).Eval()
				return d.Stats().Kernels - n, err
			}
			if _, err := run(); err != nil {
				return err
			}
			n, err := run()
			if err == nil && n != c.Kernels {
				err = fmt.Errorf("%d kernels, want %d", n, c.Kernels)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func kernels() (all []optable.Kernel) {
	for _, o := range optable.All() {
		all = append(all, o.Kernels...)
	}
	return all
}
