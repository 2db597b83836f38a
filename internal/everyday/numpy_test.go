package everyday

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/devicetest"
	_ "github.com/millrace-go/millrace/internal/nocache"
	_ "github.com/millrace-go/millrace/runtime/opengl"
	_ "github.com/millrace-go/millrace/runtime/webgpu"
)

var open = devicetest.Open

// specs are the devices of the cases. All CPU devices have the first one's bits.
var specs = []string{"cpu", "cpu:fusion=off,compile=off", "webgpu", "opengl"}

func held(d *millrace.Device, c *given) bool {
	for _, a := range slices.Concat(c.In, c.Out) {
		if !d.Supports(a.dtype()) {
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
				f := calls[c.Op]
				if f == nil {
					t.Fatalf("no call for %q", c.Op)
				}
				if !held(d, c) {
					continue
				}
				ran[c.Op] = true
				tol := c.Tol
				if gpu && tol > 0 {
					tol = max(16*tol, 1e-5)
				}
				run(t, d, c, f, tol)
			}
			for op := range calls {
				if !ran[op] {
					t.Errorf("no case of %s ran", op)
				}
			}
			if n := d.Stats().Fallbacks; n != 0 {
				t.Errorf("%d fallbacks", n)
			}
		})
	}
}

func run(t *testing.T, d *millrace.Device, c *given, f call, tol float64) {
	t.Helper()
	err := d.Scope(func(sc *millrace.Scope) error {
		var in, neighbours []*tensor
		for _, a := range c.In {
			x := a.tensor(t, sc)
			in = append(in, x)
			neighbours = append(neighbours, before(x))
		}
		got := f(sc, c, in)
		compare(t, c, got, tol, 1)
		for _, x := range in {
			x.Eval()
		}
		var wide []*tensor
		for _, r := range f(sc, c, neighbours) {
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
	for _, c := range fused {
		err := d.Scope(func(sc *millrace.Scope) error {
			run := func() (int64, error) {
				n := d.Stats().Kernels
				err := c.call(sc, func() *tensor { return x.To(sc).MulScalar(2) }, func() *tensor { return v.To(sc).AddScalar(1) }).MulScalar(3).Eval()
				return d.Stats().Kernels - n, err
			}
			if _, err := run(); err != nil {
				return err
			}
			n, err := run()
			if err == nil && n != c.kernels {
				err = fmt.Errorf("%d kernels, want %d", n, c.kernels)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// operand makes an operand by an op, a new one for each call.
type operand = func() *tensor

var fused = []struct {
	name    string
	kernels int64
	call    func(p millrace.Place, x, v operand) *tensor
}{
	{"eye", 1, func(p millrace.Place, x, _ operand) *tensor { return x().Add(millrace.EyeOn(p, millrace.Float32, 64)) }},
	{"linspace", 1, func(p millrace.Place, x, _ operand) *tensor {
		return x().Mul(millrace.LinspaceOn(p, millrace.Float32, 0, 1, 64*64).Reshape(64, 64))
	}},
	{"diag of a vector", 1, func(_ millrace.Place, x, v operand) *tensor { return x().Add(v().Diag(0)) }},
	{"diag of a matrix", 1, func(_ millrace.Place, x, v operand) *tensor { return x().Diag(0).Add(v()) }},
	{"trace", 1, func(_ millrace.Place, x, _ operand) *tensor { return x().Trace() }},
	{"outer", 1, func(_ millrace.Place, x, v operand) *tensor { return millrace.Outer(v(), v()).Add(x()) }},
	{"log10", 1, func(_ millrace.Place, x, _ operand) *tensor { return x().Log10() }},
	{"atanh", 1, func(_ millrace.Place, x, _ operand) *tensor { return x().Asinh().Add(x().Atanh()).Mul(x().Acosh()) }},
	{"median", 2, func(_ millrace.Place, x, _ operand) *tensor { return x().Median(1) }},
	{"quantile", 2, func(_ millrace.Place, x, _ operand) *tensor { return x().Quantile(0.3, 1) }},
	{"sumas", 1, func(_ millrace.Place, x, _ operand) *tensor { return x().GtScalar(0).SumAs(millrace.Int32, 1) }},
	{"searchsorted", 1, func(_ millrace.Place, x, v operand) *tensor {
		return millrace.SearchSorted(millrace.Int32, v(), x())
	}},
	{"integers", 1, func(p millrace.Place, x, _ operand) *tensor {
		return x().Add(millrace.IntegersOn(p, millrace.Int32, 3, -5, 5, 64, 64).Cast(millrace.Float32))
	}},
	{"resize", 3, func(_ millrace.Place, x, _ operand) *tensor {
		return millrace.Resize(x(), millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 32, 48)
	}},
	{"resize with a filter", 3, func(_ millrace.Place, x, _ operand) *tensor {
		return millrace.Resize(x(), millrace.ResizeOptions{Mode: millrace.ResizeCubic, Antialias: true}, 20, 48)
	}},
	// Three: if it were computed where it is read, the mean of the two middle elements would be
	// computed 64 times a row.
	{"median that keeps", 3, func(_ millrace.Place, x, _ operand) *tensor { return x().Sub(x().MedianKeep(1)) }},
	{"conv3d", 2, func(p millrace.Place, x, _ operand) *tensor {
		return millrace.Conv3d(x().Reshape(1, 4, 4, 16, 16), millrace.OnesOn(p, millrace.Float32, 2, 4, 2, 3, 3), millrace.ConvOptions{})
	}},
	{"fft of 64", 2, func(_ millrace.Place, x, _ operand) *tensor {
		re, im := millrace.RFFT(x(), 1)
		return re.Square().Add(im.Square())
	}},
	{"transpose", 1, func(_ millrace.Place, x, _ operand) *tensor { return x().Transpose(0, 1).Exp() }},
}
