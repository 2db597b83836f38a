package autodiff_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

func open(t testing.TB, spec string) *millrace.Device {
	t.Helper()
	d := openOneOf(t, spec)
	t.Cleanup(func() { d.Close() })
	return d
}

// openOneOf opens a device that the caller closes. A test that opens many lets go of each this way:
// t.Cleanup would keep the plans of all of them, and the test forces collections.
func openOneOf(t testing.TB, spec string) *millrace.Device {
	t.Helper()
	d, err := millrace.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// net is a small network, its weights in a Go struct.
type net struct{ w1, b1, w2, b2 *T }

func newNet(p millrace.Place, in, hidden, out int) *net {
	return &net{
		w1: millrace.NormalOn(p, millrace.Float32, 1, in, hidden).MulScalar(0.3), b1: millrace.ZerosOn(p, millrace.Float32, hidden),
		w2: millrace.NormalOn(p, millrace.Float32, 2, hidden, out).MulScalar(0.3), b2: millrace.ZerosOn(p, millrace.Float32, out),
	}
}

func (n *net) params() []*T { return []*T{n.w1, n.b1, n.w2, n.b2} }

func forward(ws []*T, x, y *T) *T {
	h := x.MatMul(ws[0]).Add(ws[1]).Tanh()
	return millrace.CrossEntropy(h.MatMul(ws[2]).Add(ws[3]), y).Mean()
}

// train takes one step of plain gradient descent. It sets the weights and returns the loss.
func train(n *net, x, y *T) (*T, error) {
	ws := make([]*T, 4)
	for i, p := range n.params() {
		ws[i] = autodiff.Watch(p)
	}
	loss := forward(ws, x, y)
	grads, err := autodiff.Grad(loss, ws...)
	if err != nil {
		return nil, err
	}
	for i, p := range n.params() {
		ws[i].Release()
		p.Set(p.Sub(grads[i].MulScalar(0.1)))
	}
	return autodiff.Detach(loss), nil
}

func batch(p millrace.Place, i, rows int) (x, y *T) {
	targets := make([]int32, rows)
	for k := range targets {
		targets[k] = int32((k*7 + i) % 5)
	}
	return millrace.UniformOn(p, millrace.Float32, uint64(i), rows, 12), millrace.FromSliceOn(p, targets)
}

func weightsOf(t *testing.T, n *net) []float32 {
	t.Helper()
	var all []float32
	for _, p := range n.params() {
		v, err := millrace.Values[float32](p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v...)
	}
	return all
}

// run trains for some steps in one of several ways, and returns losses and weights.
func run(t *testing.T, d *millrace.Device, how string, steps int) ([]float32, []float32) {
	t.Helper()
	s := d.NewStream()
	defer s.Close()
	n := newNet(s, 12, 16, 5)
	for _, p := range n.params() {
		if err := p.Eval(); err != nil {
			t.Fatal(err)
		}
	}
	var losses []float32
	keep := func(l *T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		v, err := millrace.Item[float32](l)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, v)
	}
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) {
		l, err := train(n, in[0], in[1])
		return []*T{l}, err
	})
	defer rec.Release()
	for i := range steps {
		rows := 8
		if i%4 == 3 {
			rows = 5 // a smaller last batch
		}
		switch how {
		case "loose":
			x, y := batch(s, i, rows)
			keep(train(n, x, y))
		case "scope":
			if err := s.Scope(func(sc *millrace.Scope) error {
				x, y := batch(sc, i, rows)
				l, err := train(n, x, y)
				keep(l, err)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		case "recorded":
			x, y := batch(s, i, rows)
			out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, x, y)
			if err != nil {
				t.Fatal(err)
			}
			keep(out[0], nil)
			out[0].Release()
			x.Release()
			y.Release()
		}
	}
	return losses, weightsOf(t, n)
}

// TestTrainingBits: the bits of losses and weights do not depend on how a step is run.
func TestTrainingBits(t *testing.T) {
	type result struct{ losses, weights []float32 }
	var want *result
	for _, spec := range []string{"cpu:fusion=off", "cpu:tier=0", "cpu:queue=1", "cpu:threads=1,explore=wait", "cpu:compile=wait,explore=wait"} {
		d := open(t, spec)
		for _, how := range []string{"loose", "scope", "recorded"} {
			l, w := run(t, d, how, 8)
			if want == nil {
				want = &result{l, w}
				if !(l[7] < l[0]) {
					t.Errorf("the loss went from %v to %v", l[0], l[7])
				}
				continue
			}
			if !slices.Equal(l, want.losses) || !slices.Equal(w, want.weights) {
				t.Errorf("%s, %s: losses %v, want %v", spec, how, l, want.losses)
			}
		}
	}
}

// TestTrainingReplays: a step in a Recording is replayed, not recorded again.
func TestTrainingReplays(t *testing.T) {
	d := open(t, "cpu:explore=wait")
	s := d.NewStream()
	n := newNet(s, 12, 16, 5)
	for _, p := range n.params() {
		p.Eval()
	}
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) {
		l, err := train(n, in[0], in[1])
		return []*T{l}, err
	})
	x, y := batch(s, 1, 8)
	step := func() {
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, x, y)
		if err != nil {
			t.Fatal(err)
		}
		out[0].Release()
	}
	for range 50 { // afterwards it is bound, if it can be; a bound step takes memory of its own, once
		step()
	}
	was := d.Stats()
	for range 100 {
		step()
	}
	now := d.Stats()
	if now.Recordings != was.Recordings || now.Explorations != was.Explorations {
		t.Errorf("100 steps recorded %d times and explored %d", now.Recordings-was.Recordings, now.Explorations-was.Explorations)
	}
	if now.LiveBytes != was.LiveBytes {
		t.Errorf("live bytes went from %d to %d", was.LiveBytes, now.LiveBytes)
	}
}

// TestGraphsGiveUp: Grad gives up the graph that it walked through, and the end of a scope frees a
// graph that was not differentiated.
func TestGraphsGiveUp(t *testing.T) {
	d := open(t, "cpu")
	s := d.NewStream()
	w := autodiff.Watch(millrace.NormalOn(s, millrace.Float32, 1, 1000))
	if err := w.Eval(); err != nil {
		t.Fatal(err)
	}
	s.Sync(nil)
	before := d.Stats().LiveBytes
	for i, f := range []func(sc *millrace.Scope) error{
		func(sc *millrace.Scope) error { return w.To(sc).Exp().Sin().Exp().Sum().Eval() },
		func(sc *millrace.Scope) error {
			l := w.To(sc).Exp().Sin().Exp().Sum()
			if err := l.Eval(); err != nil {
				return err
			}
			g, err := autodiff.Grad(l, w)
			if err != nil {
				return err
			}
			return g[0].Eval()
		},
		func(sc *millrace.Scope) error { // gradients that are zeros belong to the scope, too
			g, err := autodiff.Grad(millrace.OnesOn(sc, millrace.Float32, 1), w)
			if err != nil {
				return err
			}
			return g[0].Eval()
		},
		func(sc *millrace.Scope) error {
			l := w.To(sc).MatMul(w).Sum()
			g, err := (autodiff.Options{Keep: true}).Grad(l, w)
			if err != nil {
				return err
			}
			return g[0].Eval()
		},
	} {
		if err := s.Scope(f); err != nil {
			t.Fatal(i, err)
		}
		s.Sync(nil)
		if now := d.Stats().LiveBytes; now > before {
			t.Errorf("case %d: %d live bytes, %d before", i, now, before)
		}
	}
}

func TestSetKeepsWatching(t *testing.T) {
	w := autodiff.Watch(millrace.FromSlice([]float64{1, 2, 3}))
	for range 3 {
		loss := w.Square().Sum()
		g, err := autodiff.Grad(loss, w)
		if err != nil {
			t.Fatal(err)
		}
		w.Set(w.Sub(g[0].MulScalar(0.25))) // halves w
	}
	if got := values(t, w); fmt.Sprint(got) != "[0.125 0.25 0.375]" {
		t.Error(got)
	}
	// A handle that is not watched takes on the value that it is set to, with its graph.
	a := millrace.FromSlice([]float64{5})
	a.Set(w.Sum().Reshape(1))
	g, err := autodiff.Grad(a, w)
	if err != nil || fmt.Sprint(values(t, g[0])) != "[1 1 1]" {
		t.Error(g, err)
	}
	a.Set(millrace.FromSlice([]float64{5}))
	if autodiff.Watched(a) {
		t.Error("a was set to something else and is followed still")
	}
}

// TestKeptValues: values that a graph keeps survive Release and Set of the operands.
func TestKeptValues(t *testing.T) {
	x := millrace.FromSlice([]float64{1, 2})
	w := autodiff.Watch(millrace.FromSlice([]float64{3, 4}))
	p := w.Mul(x)
	e := p.Exp()
	p.Release()
	x.Set(millrace.FromSlice([]float64{100, 100}))
	loss := e.Log().Sum()
	e.Release()
	if err := loss.Eval(); err != nil {
		t.Fatal(err)
	}
	g, err := autodiff.Grad(loss, w)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values(t, g[0]) {
		if want := float64(i + 1); v < want-1e-9 || v > want+1e-9 {
			t.Errorf("%d: %v", i, v)
		}
	}
}

// TestStreamsAndValues: control flow may depend on values, and several streams may be used.
func TestStreamsAndValues(t *testing.T) {
	d := open(t, "cpu")
	a, b := d.NewStream(), d.NewStream()
	w := autodiff.Watch(millrace.FromSliceOn(d, []float64{0.5, 1.5}))
	x, y := millrace.FromSliceOn(a, []float64{1, 2}), millrace.FromSliceOn(b, []float64{3, 4})
	h := w.Mul(x)
	for item(t, h.Sum()) < 20 {
		h = h.Mul(w.AddScalar(1))
	}
	loss := h.To(b).Mul(y).Mul(w).Sum()
	g, err := autodiff.Grad(loss, w)
	if err != nil {
		t.Fatal(err)
	}
	f := func(w []float64) float64 {
		s := 0.0
		h := []float64{w[0], w[1] * 2}
		for range 3 {
			h[0], h[1] = h[0]*(w[0]+1), h[1]*(w[1]+1)
		}
		s = h[0]*3*w[0] + h[1]*4*w[1]
		return s
	}
	if got := item(t, loss); got != f([]float64{0.5, 1.5}) {
		t.Fatalf("%v, want %v: the loop went another number of times", got, f([]float64{0.5, 1.5}))
	}
	for i, v := range values(t, g[0]) {
		at := []float64{0.5, 1.5}
		at[i] += 1e-6
		up := f(at)
		at[i] -= 2e-6
		near(t, "w", v, (up-f(at))/2e-6)
	}
}

func TestBadInput(t *testing.T) {
	w := func() *T { return autodiff.Watch(millrace.FromSlice([]float64{1, 2, 3})) }
	s := open(t, "cpu").NewStream()
	for _, c := range []struct {
		name string
		f    func() error
		is   error
		text []string
	}{
		{"not a scalar", func() error { x := w(); _, err := autodiff.Grad(x.Exp(), x); return err }, millrace.ErrShape, []string{"[3]", "life_test.go"}},
		{"integers", func() error { return autodiff.Watch(millrace.FromSlice([]int32{1})).Err() }, millrace.ErrDType, []string{"int32"}},
		{"integer loss", func() error {
			x := w()
			_, err := autodiff.Grad(x.Cast(millrace.Int32).Sum(), x)
			return err
		}, millrace.ErrDType, []string{"int32"}},
		{"not watched", func() error {
			x := w()
			_, err := autodiff.Grad(x.Sum(), millrace.Ones(millrace.Float64, 3))
			return err
		}, autodiff.ErrGraph, []string{"not watched"}},
		{"twice", func() error {
			x := w()
			l := x.Exp().Sum()
			if _, err := autodiff.Grad(l, x); err != nil {
				return err
			}
			_, err := autodiff.Grad(l, x)
			return err
		}, autodiff.ErrGraph, []string{"sum at", "life_test.go", "Grad at", "Keep"}},
		{"ended scope", func() error {
			x := w()
			var l *T
			s.Scope(func(sc *millrace.Scope) error { l = x.To(sc).Exp().Sum(); return nil })
			_, err := autodiff.Grad(l, x)
			return err
		}, millrace.ErrReleased, []string{"scope opened at", "life_test.go"}},
		{"part in an ended scope", func() error {
			x := w()
			var l *T
			s.Scope(func(sc *millrace.Scope) error { l = sc.Keep(x.To(sc).Exp().Sum()); return nil })
			_, err := autodiff.Grad(l, x)
			return err
		}, millrace.ErrReleased, []string{"exp at", "life_test.go"}},
		{"a tensor that failed", func() error {
			x := w()
			_, err := autodiff.Grad(x.MatMul(millrace.Ones(millrace.Float64, 7, 7)).Sum(), x)
			return err
		}, millrace.ErrShape, []string{"matmul"}},
		{"released", func() error { x := w(); l := x.Sum(); x.Release(); _, err := autodiff.Grad(l, x); return err }, millrace.ErrReleased, []string{"life_test.go"}},
		{"another dtype", func() error {
			x := w()
			_, err := autodiff.VJP([]*T{x.Exp()}, []*T{millrace.Ones(millrace.Float32, 3)}, []*T{x})
			return err
		}, millrace.ErrShape, []string{"result 0"}},
		{"recording", func() error {
			x := w()
			_, err := millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) { return in, nil }).RunWith(nil, millrace.RunOptions{On: x.Stream()}, x)
			return err
		}, millrace.ErrUnsupported, []string{"autodiff"}},
		{"nil", func() error { _, err := autodiff.Grad(nil, nil); return err }, nil, []string{"loss"}},
		{"nil wrt", func() error { x := w(); _, err := autodiff.Grad(x.Sum(), nil); return err }, nil, []string{"tensor 0"}},
		{"nil watch", func() error { return autodiff.Watch(nil).Err() }, nil, []string{""}},
		{"NaN", func() error {
			x := autodiff.Options{CheckFinite: true}.Watch(millrace.FromSlice([]float64{1, -2, 3}))
			_, err := autodiff.Options{CheckFinite: true}.Grad(x.MulScalar(2).Log().Exp().Sum(), x)
			return err
		}, autodiff.ErrGraph, []string{"log at", "life_test.go"}},
		{"infinite derivative", func() error {
			x := autodiff.Watch(millrace.FromSlice([]float64{0, 2, 3}))
			_, err := autodiff.Options{CheckFinite: true}.Grad(x.Sqrt().Sum(), x)
			return err
		}, autodiff.ErrGraph, []string{"not finite"}},
		{"no rule", func() error {
			x := w()
			_, err := autodiff.Grad(millrace.Ones(millrace.Float64, 3).ScatterMul(millrace.FromSlice([]int32{0, 1, 2}), x, 0).Sum(), x)
			return err
		}, autodiff.ErrGraph, []string{"scatter at", "life_test.go"}},
		{"a target out of range", func() error {
			x := w()
			g, err := autodiff.Grad(millrace.CrossEntropy(x.Unsqueeze(0), millrace.FromSlice([]int32{7})).Sum(), x)
			if err != nil {
				return err
			}
			return g[0].Eval() // the program has not read the loss
		}, millrace.ErrIndex, []string{"index 7"}},
		{"an index out of range", func() error {
			x := w()
			g, err := autodiff.Grad(millrace.Ones(millrace.Float64, 4).ScatterAdd(millrace.FromSlice([]int32{0, 9, 1}), x, 0).Sum(), x)
			if err != nil {
				return err
			}
			return g[0].Eval()
		}, millrace.ErrIndex, []string{"index 9"}},
		{"another device", func() error {
			x, other := w(), open(t, "cpu")
			y := autodiff.Watch(millrace.OnesOn(other, millrace.Float64, 2))
			_, err := autodiff.Grad(x.Sum(), x, y)
			return err
		}, autodiff.ErrGraph, []string{"tensor 1", "watched tensor at", "life_test.go", "device"}},
		{"of nothing", func() error { x := w(); _, err := autodiff.VJP(nil, nil, []*T{x}); return err }, autodiff.ErrGraph, []string{"no results were given"}},
		{"custom with too few", func() error {
			x := w()
			y := autodiff.Custom(func(in []*T) []*T { return []*T{in[0].Exp()} }, func(in, out, d []*T) []*T { return nil }, x)
			_, err := autodiff.Grad(y[0].Sum(), x)
			return err
		}, autodiff.ErrGraph, []string{"custom at", "0 gradients"}},
		{"custom with another shape", func() error {
			x := w()
			y := autodiff.Custom(func(in []*T) []*T { return []*T{in[0].Exp()} }, func(in, out, d []*T) []*T { return []*T{d[0].Sum()} }, x)
			_, err := autodiff.Grad(y[0].Sum(), x)
			return err
		}, millrace.ErrShape, []string{"custom at", "operand 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.f()
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("%v, want %v", err, c.is)
			}
			for _, s := range c.text {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
}

// TestDTypesAndRanks calls each function with every dtype and ranks 0 to 2. It has a result, or an
// error that names the line. Nothing panics.
func TestDTypesAndRanks(t *testing.T) {
	w := autodiff.Watch(millrace.FromSlice([]float64{1, 2, 3}))
	same := func(in []*T) []*T { return in }
	pass := func(in, out, d []*T) []*T { return d }
	errs := func(ts []*T) error {
		for _, x := range ts {
			if err := x.Err(); err != nil {
				return err
			}
		}
		return nil
	}
	anyRank, number := [2]int{0, 2}, [2]int{0, 0}
	floats, anyDType := millrace.DType.IsFloat, func(millrace.DType) bool { return true }
	for name, c := range map[string]struct {
		call   func(x *T) error
		dtypes func(millrace.DType) bool
		ranks  [2]int
	}{
		"Watch":      {func(x *T) error { return autodiff.Watch(x).Err() }, floats, anyRank},
		"Detach":     {func(x *T) error { return autodiff.Detach(x).Err() }, anyDType, anyRank},
		"Grad":       {func(x *T) error { _, err := autodiff.Grad(x, w); return err }, floats, number},
		"VJP":        {func(x *T) error { _, err := autodiff.VJP([]*T{x}, []*T{x}, []*T{w}); return err }, floats, anyRank},
		"JVP":        {func(x *T) error { _, _, err := autodiff.JVP(same, []*T{x}, []*T{x}); return err }, floats, anyRank},
		"JVP of w":   {func(x *T) error { _, _, err := autodiff.JVP(same, []*T{w}, []*T{x}); return err }, floats, [2]int{3, 3}},
		"Checkpoint": {func(x *T) error { return errs(autodiff.Checkpoint(same, x)) }, anyDType, anyRank},
		"Custom":     {func(x *T) error { return errs(autodiff.Custom(same, pass, x, w)) }, anyDType, anyRank},
		"ValueAndGrad": {func(x *T) error {
			_, _, err := autodiff.ValueAndGrad(func(in []*T) *T { return in[0] }, x)
			return err
		}, floats, number},
		"HessianVectorProduct": {func(x *T) error {
			_, err := autodiff.HessianVectorProduct(func(in []*T) *T { return in[0].Square().Sum() }, []*T{x}, []*T{x})
			return err
		}, floats, anyRank},
		"HessianVectorProduct of w": {func(x *T) error {
			_, err := autodiff.HessianVectorProduct(func(in []*T) *T { return in[0].Square().Sum() }, []*T{w}, []*T{x})
			return err
		}, floats, [2]int{3, 3}},
	} {
		for _, dt := range []millrace.DType{millrace.Bool, millrace.Int8, millrace.Int64, millrace.Uint8, millrace.Uint64, millrace.Float16, millrace.BFloat16, millrace.Float32, millrace.Float64} {
			for rank := range 3 {
				err := c.call(millrace.Ones(dt, slices.Repeat([]int{2}, rank)...))
				good := c.dtypes(dt) && rank >= c.ranks[0] && rank <= c.ranks[1]
				if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "life_test.go:") {
					t.Errorf("%s of %v, rank %d: %v", name, dt, rank, err)
				}
			}
		}
		if err := c.call(nil); err == nil || !strings.Contains(err.Error(), "life_test.go:") {
			t.Errorf("%s of nil: %v", name, err)
		}
	}
}

// TestGradByGivenUp: derivatives by a result of a graph that was given up can be taken, because
// they do not need that graph.
func TestGradByGivenUp(t *testing.T) {
	w := autodiff.Watch(millrace.FromSlice([]float64{1, 2}))
	h := w.Square()
	if _, err := autodiff.Grad(h.Sum(), w); err != nil {
		t.Fatal(err)
	}
	g, err := autodiff.Grad(h.Square().Sum(), h)
	if err != nil || fmt.Sprint(values(t, g[0])) != "[2 8]" {
		t.Error(g, err)
	}
	if _, err := autodiff.Grad(h.Square().Sum(), h, w); !errors.Is(err, autodiff.ErrGraph) {
		t.Error(err)
	}
}

// TestManySmallDerivatives: a 16-bit tensor that is used many times gets the sum of its
// derivatives, rounded once.
func TestManySmallDerivatives(t *testing.T) {
	for _, dt := range []millrace.DType{millrace.BFloat16, millrace.Float16} {
		w := autodiff.Watch(millrace.Full(dt, 1, 2))
		s := w.Slice(millrace.R(0, 1)).Add(w)
		for range 5000 {
			s = s.Add(w)
		}
		g, err := autodiff.Grad(s.Sum(), w)
		if err != nil {
			t.Fatal(err)
		}
		if g[0].DType() != dt {
			t.Errorf("a derivative of %v for %v", g[0].DType(), dt)
		}
		want := fmt.Sprint(values(t, millrace.FromSlice([]float64{5003, 5001}).Cast(dt).Cast(millrace.Float64)))
		if got := fmt.Sprint(values(t, g[0].Cast(millrace.Float64))); got != want {
			t.Errorf("%v: %s, want %s", dt, got, want)
		}
	}
}
