package apitest

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
)

// model is code with broadcast operands, several outputs and a reduction. A second pass must find
// its plans known at any batch size.
func model(x, weight, bias, scale *millrace.Tensor) (*millrace.Tensor, *millrace.Tensor) {
	h := x.Mul(weight).Add(bias)
	g := h.Gelu().Mul(scale)
	s := g.Sub(g.MaxKeep(-1)).Exp()
	return s.Div(s.SumKeep(-1)), h.Tanh()
}

// inMemory writes weights before the first pass, as those of a model are. Tensors that a pass
// creates itself may be recomputed and then written in the second pass, which makes the second a
// different program from the third.
func inMemory(t *testing.T, ts ...*millrace.Tensor) {
	t.Helper()
	for _, x := range ts {
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecondPassIsKnown: a second pass over the same code makes no plan and compiles nothing, also
// at a new batch size: sizes are not part of a plan.
func TestSecondPassIsKnown(t *testing.T) {
	for _, spec := range []string{"cpu:tier=0,explore=wait", "cpu:tier=0,explore=background", "cpu:compile=wait",
		"cpu:fusion=greedy,tier=0", "cpu:fusion=off,tier=0"} {
		t.Run(spec, func(t *testing.T) {
			dev := openSpec(t, spec)
			const d = 24
			weight := millrace.UniformOn(dev, millrace.Float32, 1, d)
			bias := millrace.UniformOn(dev, millrace.Float32, 2, 1, d)
			inMemory(t, weight, bias)
			pass := func(batch int) {
				t.Helper()
				x := millrace.UniformOn(dev, millrace.Float32, 3, batch, d)
				scale := millrace.UniformOn(dev, millrace.Float32, 4, batch, 1)
				p, h := model(x, weight, bias, scale)
				if v, err := millrace.Values[float32](p); err != nil || len(v) != batch*d {
					t.Fatalf("batch %d: %d values, %v", batch, len(v), err)
				}
				if v, err := millrace.Values[float32](h); err != nil || len(v) != batch*d {
					t.Fatalf("batch %d: %d values, %v", batch, len(v), err)
				}
			}
			pass(32)
			if err := dev.Wait(); err != nil {
				t.Fatal(err)
			}
			before := dev.Stats()
			for _, batch := range []int{32, 31, 7, 1, 24, 32} {
				pass(batch)
				if err := dev.Wait(); err != nil {
					t.Fatal(err)
				}
				after := dev.Stats()
				if e, c := after.Explorations-before.Explorations, after.Runtime.Compiles-before.Runtime.Compiles; e != 0 || c != 0 {
					t.Errorf("batch %d: %d explorations, %d compiles", batch, e, c)
				}
				if hits, segs := after.PlanHits-before.PlanHits, after.Segments-before.Segments; hits != segs {
					t.Errorf("batch %d: %d of %d segments were known", batch, hits, segs)
				}
				before = after
			}
		})
	}
}

// TestScalarsAreNoPlan: other scalars use the same plan.
func TestScalarsAreNoPlan(t *testing.T) {
	dev := open(t, millrace.Options{Tier: millrace.TierInterpreter})
	x := millrace.OnesOn(dev, millrace.Float32, 100)
	inMemory(t, x)
	before := dev.Stats().Explorations
	for i := range 20 {
		if err := wantAll(x.MulScalar(float64(i)).AddScalar(float64(i)), 100, float32(2*i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := dev.Stats().Explorations - before; n != 1 {
		t.Errorf("%d explorations, want 1", n)
	}
}

// TestLoopExploresOnce: a loop whose body is longer than the queue is cut where it repeats, which
// bounds the number of explored plans.
func TestLoopExploresOnce(t *testing.T) {
	dev := open(t, millrace.Options{Tier: millrace.TierInterpreter})
	x := millrace.OnesOn(dev, millrace.Float32, 100)
	var mid int64
	for i := range 400 {
		x = x.MulScalar(0.5).AddScalar(1).Abs().Sqrt().Square().SubScalar(0.25).MaximumScalar(1)
		if i == 200 {
			mid = dev.Stats().Explorations
		}
	}
	if err := x.Eval(); err != nil {
		t.Fatal(err)
	}
	if end := dev.Stats().Explorations; end > mid+2 || end > 8 {
		t.Errorf("%d explorations in the first half, %d in all", mid, end)
	}
}

// TestFusionHappens: elementwise code is one kernel, and its intermediates are neither allocated
// nor written.
func TestFusionHappens(t *testing.T) {
	dev := open(t, millrace.Options{Tier: millrace.TierInterpreter})
	const n = 10000
	x := millrace.FromSliceOn(dev, make([]float32, n))
	row := millrace.FromSliceOn(dev, make([]float32, 100))
	before := dev.Stats()
	y := x.Mul(x).AddScalar(1).Exp().Sub(x).Reshape(100, 100).Add(row).T().Flip(0).Tanh()
	if err := y.Eval(); err != nil {
		t.Fatal(err)
	}
	after := dev.Stats()
	if k := after.Runtime.Launches - before.Runtime.Launches; k != 1 {
		t.Errorf("%d kernels, want 1: %s", k, y.Explain())
	}
	if w := after.Runtime.BytesWritten - before.Runtime.BytesWritten; w != 4*n {
		t.Errorf("%d bytes written, want %d", w, 4*n)
	}
	if r := after.Runtime.BytesRead - before.Runtime.BytesRead; r != 4*(n+100) {
		t.Errorf("%d bytes read, want %d", r, 4*(n+100))
	}
}

// TestFirstValueWaitsForNoCompiler: the first value of new code waits for no compiler.
func TestFirstValueWaitsForNoCompiler(t *testing.T) {
	dev := open(t, millrace.Options{})
	x := millrace.FromSliceOn(dev, make([]float32, 1000))
	for i := range 40 {
		if i%2 == 0 {
			x = x.MulScalar(1.5)
		} else {
			x = x.AddScalar(1).Tanh()
		}
	}
	v, err := millrace.Values[float32](x)
	if err != nil || math.IsNaN(float64(v[0])) {
		t.Fatal(v[0], err)
	}
	s := dev.Stats()
	if s.Runtime.Compiles != 0 && s.Runtime.Tier0 == 0 {
		t.Errorf("%d compiles came first, no launch was interpreted", s.Runtime.Compiles)
	}
	if s.Runtime.Tier0 == 0 {
		t.Error("the first launch was not interpreted")
	}
}

// TestInPlace: a released operand without other readers is overwritten in place; one that may still
// be read is not.
func TestInPlace(t *testing.T) {
	dev := open(t, millrace.Options{Tier: millrace.TierInterpreter})
	const n = 5000
	for range 2 {
		x := millrace.FullOn(dev, millrace.Float32, 3, n)
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
		before := dev.Stats().InPlace
		y := x.AddScalar(1)
		x.Release()
		if err := wantAll(y, n, 4); err != nil {
			t.Fatal(err)
		}
		if got := dev.Stats().InPlace - before; got != 1 {
			t.Errorf("%d outputs in place of a released operand, want 1", got)
		}
		before = dev.Stats().InPlace
		z := y.AddScalar(1)
		if err := wantAll(z, n, 5); err != nil {
			t.Fatal(err)
		}
		if err := wantAll(y, n, 4); err != nil {
			t.Error("a live operand was overwritten: ", err)
		}
		if got := dev.Stats().InPlace - before; got != 0 {
			t.Errorf("%d outputs in place of a live operand", got)
		}
	}
}
