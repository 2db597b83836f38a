package nn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

func values(t *testing.T, x *millrace.Tensor) []float32 {
	t.Helper()
	v, err := millrace.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func device(t *testing.T) *millrace.Device {
	t.Helper()
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestBufferUpdate: a pass sees its own update of a buffer at once; others see it after a commit,
// and never if the pass failed.
func TestBufferUpdate(t *testing.T) {
	b := nn.NewBuffer(millrace.Scalar[float32](1))
	c := nn.NewCtx(nn.CtxOptions{Train: true})
	for range 2 {
		b.Update(c, b.In(c).AddScalar(1))
	}
	if got := values(t, b.In(c)); got[0] != 3 {
		t.Errorf("the pass sees %v", got)
	}
	if got := values(t, b.In(nn.Eval())); got[0] != 1 {
		t.Errorf("others see %v before Commit", got)
	}
	if err := c.CommitIf(millrace.Scalar(false)); err != nil || values(t, b.Tensor())[0] != 1 {
		t.Errorf("a step that did not count: %v, %v", b.Tensor(), err)
	}
	b.Update(c, b.In(c).AddScalar(1))
	if err := c.Commit(); err != nil || values(t, b.Tensor())[0] != 2 {
		t.Errorf("after Commit: %v, %v", b.Tensor(), err)
	}
	b.Update(c, millrace.Zeros(millrace.Float32, -1))
	if err := c.Commit(); !errors.Is(err, millrace.ErrShape) || values(t, b.Tensor())[0] != 2 {
		t.Errorf("after a step that went wrong: %v, %v", b.Tensor(), err)
	}
}

// TestWatched: each weight once, in order of use, without buffers and frozen weights.
func TestWatched(t *testing.T) {
	a, b, frozen, buffer := weight(), weight(), weight(), nn.NewBuffer(millrace.Scalar[float32](1))
	frozen.Freeze(true)
	c := nn.NewCtx(nn.CtxOptions{Watch: true, DType: millrace.BFloat16})
	for _, p := range []*nn.Param{b, frozen, a, buffer, b} {
		want := millrace.BFloat16
		if p == buffer {
			want = millrace.Float32
		}
		if got := p.In(c).DType(); got != want {
			t.Errorf("computes in %v", got)
		}
	}
	if b.In(c) != b.In(c) {
		t.Error("a weight is two handles in one pass")
	}
	ps, hs := c.Watched()
	if !slices.Equal(ps, []*nn.Param{b, a}) || len(hs) != 2 || hs[0].DType() != millrace.Float32 {
		t.Errorf("followed: %v, %v", ps, hs)
	}
}

// TestRandom: numbers differ from draw to draw and from step to step, repeat from a saved state,
// and have the moments of their distributions.
func TestRandom(t *testing.T) {
	r := nn.NewRandom(7)
	draw := func(r *nn.Random) []float32 {
		c := nn.NewCtx(nn.CtxOptions{Random: r})
		v := slices.Concat(values(t, c.Uniform(100)), values(t, c.Uniform(10, 10)))
		if err := c.Commit(); err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := draw(r)
	if slices.Equal(first[:100], first[100:]) {
		t.Error("two draws of a step are equal")
	}
	second := draw(r)
	if slices.Equal(first[:100], second[:100]) || slices.Equal(first[100:], second[:100]) {
		t.Error("two steps draw the same")
	}
	again := nn.NewRandom(7)
	if !slices.Equal(draw(again), first) || !slices.Equal(draw(again), second) {
		t.Error("the same seed gives other numbers")
	}
	for _, seed := range []uint64{8, 1<<32 + 7} {
		if slices.Equal(draw(nn.NewRandom(seed)), first) {
			t.Errorf("seed %d gives the same numbers", seed)
		}
	}
	if slices.Min(first) < 0 || slices.Max(first) >= 1 {
		t.Errorf("numbers from %v to %v", slices.Min(first), slices.Max(first))
	}
	const n = 1 << 16
	c := nn.NewCtx(nn.CtxOptions{Random: r})
	near := func(what string, got, want, tol float64) {
		if math.Abs(got-want) > tol {
			t.Errorf("%s: %v, want about %v", what, got, want)
		}
	}
	mean := func(x *millrace.Tensor) float64 { return float64(values(t, x.Mean())[0]) }
	u, g := c.Uniform(n), c.Normal(n)
	near("mean of Uniform", mean(u), 0.5, 0.01)
	near("square of Uniform", mean(u.Square()), 1.0/3, 0.01)
	near("mean of Normal", mean(g), 0, 0.02)
	near("square of Normal", mean(g.Square()), 1, 0.03)
	near("fourth power of Normal", mean(g.PowInt(4)), 3, 0.2)
	for _, p := range []float64{0, 0.1, 0.5, 1} {
		near("Bernoulli", mean(c.Bernoulli(p, n).Cast(millrace.Float32)), p, 0.01)
	}
}

func TestRandomErrors(t *testing.T) {
	c := nn.NewCtx(nn.CtxOptions{Random: nn.NewRandom(1)})
	for name, x := range map[string]*millrace.Tensor{
		"no source": nn.NewCtx(nn.CtxOptions{Train: true}).Uniform(3), "nil": (*nn.Ctx)(nil).Bernoulli(0.5, 3),
		"shape": c.Uniform(-1), "too many": c.Uniform(1<<20, 1<<20), "probability": c.Bernoulli(2, 3), "NaN": c.Bernoulli(math.NaN(), 3),
	} {
		var op *millrace.OpError
		if err := x.Err(); !errors.As(err, &op) || !strings.Contains(op.Caller, "ctx_test.go:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRandomRecording: a Recording draws other numbers in each run, the same ones as the function
// without a Recording.
func TestRandomRecording(t *testing.T) {
	run := func(r *nn.Random, record bool) (all [][]float32) {
		s := device(t).DefaultStream()
		step := func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			c := nn.NewCtx(nn.CtxOptions{Random: r, Scope: sc})
			y := in[0].Add(c.Uniform(8)).Mul(c.Uniform(8))
			return []*millrace.Tensor{y}, c.Commit()
		}
		rec := millrace.NewRecording(step)
		defer rec.Release()
		before := device(t).Stats().Recordings
		for range 4 {
			if !record {
				rec = millrace.NewRecording(step)
			}
			out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, millrace.Ones(millrace.Float32, 8))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, values(t, out[0]))
		}
		if n := device(t).Stats().Recordings - before; record && n != 1 {
			t.Errorf("the function was called %d times", n)
		}
		return all
	}
	want, got := run(nn.NewRandom(3), false), run(nn.NewRandom(3), true)
	for i := range want {
		if !slices.Equal(want[i], got[i]) || i > 0 && slices.Equal(got[i], got[i-1]) {
			t.Errorf("run %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// TestUsed: a pass lists the parameters that it used and did not change, and computes with the
// handles of CtxOptions.As.
func TestUsed(t *testing.T) {
	a, b, mean := nn.NewParam(millrace.Scalar[float32](1)), nn.NewParam(millrace.Scalar[float32](2)), nn.NewBuffer(millrace.Scalar[float32](3))
	c := nn.NewCtx(nn.CtxOptions{Train: true, As: map[*nn.Param]*millrace.Tensor{a: millrace.Scalar[float32](10)}})
	x := a.In(c).Add(b.In(c)).Add(mean.In(c))
	if got := values(t, x); got[0] != 15 {
		t.Errorf("computed %v", got)
	}
	if got := c.Used(); !slices.Equal(got, []*nn.Param{a, b, mean}) {
		t.Errorf("used %v", got)
	}
	mean.Update(c, x)
	if got := c.Used(); !slices.Equal(got, []*nn.Param{a, b}) {
		t.Errorf("used and not changed %v", got)
	}
}

// TestScopeOwns: tensors computed from weights alone end with the pass's scope. Buffers and
// counters that a recorded pass changes keep their recorded ops.
func TestScopeOwns(t *testing.T) {
	dev := device(t)
	w := nn.NewParam(millrace.ScalarOn(dev, float32(2)))
	mean := nn.NewBuffer(millrace.ScalarOn(dev, float32(1)))
	r := nn.NewRandom(1, nn.On(dev))
	var inside *millrace.Tensor
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Random: r, Scope: sc})
		inside = w.In(c).Square()
		mean.Update(c, mean.In(c).Add(inside))
		out := c.Uniform(2).Add(in[0])
		return []*millrace.Tensor{out}, c.Commit()
	})
	before := dev.Stats().Recordings
	for i := range 4 {
		if _, err := rec.Run(nil, millrace.ScalarOn(dev, float32(0))); err != nil {
			t.Fatal(err)
		}
		if got := values(t, mean.Tensor()); got[0] != float32(5+4*i) {
			t.Errorf("a mean of %v in run %d", got, i)
		}
	}
	if n := dev.Stats().Recordings - before; n != 1 {
		t.Errorf("%d recordings", n)
	}
	if err := inside.Err(); !errors.Is(err, millrace.ErrReleased) {
		t.Errorf("after the scope: %v", err)
	}
}
