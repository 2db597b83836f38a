package autodiff_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// steps are what long functions repeat on rows of 100 elements. w is 100 by 100.
var steps = map[string]func(y, w *T) *T{
	"sines":    func(y, _ *T) *T { return y.Sin() },
	"light":    func(y, _ *T) *T { return y.Mul(y.AddScalar(1)).MulScalar(0.5) },
	"roots":    func(y, _ *T) *T { return y.Square().AddScalar(1).Sqrt() },
	"softmax":  func(y, _ *T) *T { return y.Softmax(-1).Add(y) },
	"norm":     func(y, _ *T) *T { return y.LayerNorm(nil, nil, 1e-5).Gelu() },
	"residual": func(y, w *T) *T { return y.MatMul(w).Tanh().Add(y) },
	"attention": func(y, w *T) *T { // products that a kernel writes stay in memory, even if no gradient needs them
		q := y.MatMul(w)
		return q.MatMul(y.T()).MulScalar(0.1).Softmax(-1).MatMul(q).Add(y).LayerNorm(nil, nil, 1e-5)
	},
}

// repeated is the function that applies a step n times.
func repeated(n int, step string) func(x, w *T) *T {
	return func(x, w *T) *T { return times(n, x, func(y *T) *T { return steps[step](y, w) }) }
}

func times(n int, x *T, f func(*T) *T) *T {
	for range n {
		x = f(x)
	}
	return x
}

// long lists functions of more ops than a stream queues outside of scopes. needs is the number of
// values of x's size that may be in memory, if a scope takes less.
var long = []struct {
	step           string
	n, rows, needs int
}{
	{"sines", 240, 200, 240},
	{"sines", 1000, 1, 0},
	{"light", 100, 200, 100},
	{"roots", 90, 200, 45},
	{"softmax", 30, 200, 30},
	{"norm", 30, 200, 70},
	{"residual", 40, 200, 100},
	{"attention", 10, 200, 110},
}

// counted is the number of operations run, the recomputed results, the peak memory and the results
// of passes.
type counted struct {
	ops  []int64
	redo int64
	peak int64
	bits []float32
}

// TestOutsideOfScopes: outside of scopes a forward pass is cut where the queue is full, or where
// its loss is read. The values that its gradient needs are then in memory, or a few cheap ops
// compute them from such values. So the program runs about as many ops as in a scope, and takes
// about as much memory.
func TestOutsideOfScopes(t *testing.T) {
	for _, c := range long {
		t.Run(fmt.Sprintf("%s/%d", c.step, c.n), func(t *testing.T) {
			f := repeated(c.n, c.step)
			want := passes(t, c.rows, f, true, false)
			most := 13 * max(want.peak, int64(400*c.rows*c.needs)) / 10
			for _, read := range []bool{false, true} {
				got := passes(t, c.rows, f, false, read)
				t.Logf("read %v: %d ops for %d, at most %d bytes for %d", read, got.ops, want.ops, got.peak, want.peak)
				if got.redo > 0 {
					t.Errorf("read %v: %d results were computed again from the start of their segment", read, got.redo)
				}
				for turn, n := range got.ops {
					if 10*n > 13*want.ops[turn] {
						t.Errorf("read %v, turn %d: %d ops, in a scope %d", read, turn, n, want.ops[turn])
					}
				}
				if got.peak > most {
					t.Errorf("read %v: %d bytes at most, in a scope %d, and %d are enough", read, got.peak, want.peak, most)
				}
				if !slices.Equal(got.bits, want.bits) {
					t.Errorf("read %v: other bits", read)
				}
			}
		})
	}
}

// passes takes the derivatives of f's sum, twice.
func passes(t *testing.T, rows int, f func(x, w *T) *T, inScope, read bool) (got counted) {
	t.Helper()
	d := open(t, "cpu:cache=off,compile=off,tune=off")
	weights := millrace.NormalOn(d, millrace.Float32, 1, 100, 100).MulScalar(0.05)
	data := millrace.NormalOn(d, millrace.Float32, 2, rows, 100)
	floats(t, weights)
	floats(t, data)
	pass := func(p millrace.Place) *T {
		x, w := autodiff.Watch(data.To(p)), autodiff.Watch(weights.To(p))
		loss := f(x, w).Sum()
		if read {
			if _, err := millrace.Item[float32](loss); err != nil {
				t.Fatal(err)
			}
		}
		g, err := autodiff.Grad(loss, x, w)
		if err != nil {
			t.Fatal(err)
		}
		return millrace.Concat(0, g[0].Reshape(-1), g[1].Reshape(-1))
	}
	start := d.Stats()
	for range 2 {
		collect(t, d)
		before := d.Stats()
		var g *T
		if inScope {
			d.Scope(func(sc *millrace.Scope) error { g = sc.Keep(pass(sc)); return nil })
		} else {
			g = pass(d)
		}
		got.bits = floats(t, g)
		g.Release()
		got.ops = append(got.ops, d.Stats().Ops-before.Ops)
	}
	got.redo = d.Stats().Recomputes - start.Recomputes
	got.peak = d.Stats().Runtime.PeakBytes - start.LiveBytes
	return got
}

// mapped is a chain that ends in a segment of its own. It returns the chain's tensors.
func mapped(t *testing.T, d *millrace.Device) (w, between, loss *T) {
	t.Helper()
	x := millrace.UniformOn(d, millrace.Float32, 1, 30000)
	floats(t, x)
	w = autodiff.Watch(x)
	between = w.Exp()
	loss = between.Sin().Sum()
	if _, err := millrace.Item[float32](loss); err != nil {
		t.Fatal(err)
	}
	return w, between, loss
}

// TestNeededUntilGrad: a value that a gradient needs is in memory until the last Grad that can use
// it. Then it is virtual again, and can still be read.
func TestNeededUntilGrad(t *testing.T) {
	d := open(t, "cpu:cache=off,compile=off")
	w, between, loss := mapped(t, d)
	const size = 4 * 30000
	live := func(what string, blocks int64) {
		t.Helper()
		if got := d.Stats().LiveBytes / size; got != blocks {
			t.Errorf("%s: %d blocks of memory, want %d", what, got, blocks)
		}
	}
	live("the loss was read", 2)
	for range 2 {
		g, err := autodiff.Options{Keep: true}.Grad(loss, w)
		if err != nil || g[0].Eval() != nil {
			t.Fatal(err)
		}
		live("a derivative that keeps the graph", 3)
		g[0].Release()
	}
	g, err := autodiff.Grad(loss, w)
	if err != nil || g[0].Eval() != nil {
		t.Fatal(err)
	}
	live("the last derivative", 2)
	if n := d.Stats().Recomputes; n != 0 {
		t.Errorf("computed again %d times", n)
	}
	got, want := floats(t, between), floats(t, w.Exp())
	if !slices.Equal(got, want) {
		t.Error("other bits when it is computed again")
	}
	if n := d.Stats().Recomputes; n != 1 {
		t.Errorf("asked for at last: computed again %d times", n)
	}
}

// TestCheapIsNotWritten: a value that a gradient needs, and that is a light op away from another
// one, is not written. The gradient computes it in its kernel. A program that takes gradients
// through one graph again and again computes it a few times at most.
func TestCheapIsNotWritten(t *testing.T) {
	d := open(t, "cpu:cache=off,compile=off")
	x := millrace.UniformOn(d, millrace.Float32, 1, 30000)
	floats(t, x)
	w := autodiff.Watch(x)
	e := w.Exp()
	cheap := e.AddScalar(1)
	loss := cheap.Sin().Sum()
	value, err := millrace.Item[float32](loss)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Stats().LiveBytes / (4 * 30000); got != 2 {
		t.Errorf("%d blocks of memory, want those of the operand and of its power", got)
	}
	var want []float32
	var ops []int64
	for i := range 8 {
		before := d.Stats().Ops
		g, err := autodiff.Options{Keep: i < 7}.Grad(loss, w)
		if err != nil {
			t.Fatal(err)
		}
		got := floats(t, g[0])
		ops = append(ops, d.Stats().Ops-before)
		if g[0].Release(); want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Fatalf("gradient %d has other bits", i)
		}
	}
	if least := slices.Min(ops); !slices.Equal(ops, []int64{least + 1, least + 1, least + 1, least + 1, least, least, least, least}) {
		t.Errorf("gradients of %d ops: one op is to be computed again in four of them", ops)
	}
	got := floats(t, cheap)
	again := w.Exp().AddScalar(1)
	if !slices.Equal(got, floats(t, again)) {
		t.Error("other bits when the program reads the value")
	}
	if v, _ := millrace.Item[float32](again.Sin().Sum()); v != value {
		t.Errorf("the loss is %v, was %v", v, value)
	}
}

// TestCheapIsGivenBack: after the last gradient, a cheap value holds no memory of the values from
// which it was computed, though the program still has it.
func TestCheapIsGivenBack(t *testing.T) {
	d := open(t, "cpu:cache=off,compile=off")
	x := millrace.UniformOn(d, millrace.Float32, 1, 30000)
	floats(t, x)
	w := autodiff.Watch(x)
	var all []*T
	y := times(30, w, func(y *T) *T {
		z := y.AddScalar(1)
		y = y.Mul(z)
		all = append(all, z, y)
		return y
	})
	loss := y.Sum()
	if _, err := millrace.Item[float32](loss); err != nil {
		t.Fatal(err)
	}
	if got := d.Stats().LiveBytes / (4 * 30000); got > 31 {
		t.Errorf("%d blocks of memory for 30 products", got)
	}
	g, err := autodiff.Grad(loss, w)
	if err != nil || g[0].Eval() != nil {
		t.Fatal(err)
	}
	if got := d.Stats().LiveBytes / (4 * 30000); got != 2 {
		t.Errorf("%d blocks of memory after the gradient, want those of the operand and of the gradient", got)
	}
	want := w
	for i := 0; i < len(all); i += 2 {
		z := want.AddScalar(1)
		want = want.Mul(z)
		if !slices.Equal(floats(t, all[i]), floats(t, z)) || !slices.Equal(floats(t, all[i+1]), floats(t, want)) {
			t.Fatalf("value %d has other bits", i)
		}
	}
}

// TestNeededByTheProgramToo: a value that the program read, set or used on another stream stays in
// memory after Grad.
func TestNeededByTheProgramToo(t *testing.T) {
	for what, use := range map[string]func(d *millrace.Device, x *T) *T{
		"read": func(_ *millrace.Device, x *T) *T { x.Eval(); return x },
		"set": func(d *millrace.Device, x *T) *T {
			h := millrace.ZerosOn(d, millrace.Float32, 1)
			h.Set(x)
			return h
		},
		"on another stream": func(d *millrace.Device, x *T) *T { return x.To(d.NewStream()) },
		"a view": func(d *millrace.Device, x *T) *T {
			v := x.Reshape(300, 100)
			v.Eval()
			return v
		},
	} {
		d := open(t, "cpu:cache=off,compile=off")
		w, between, loss := mapped(t, d)
		want := floats(t, w.Exp().Reshape(-1))
		x := use(d, between)
		g, err := autodiff.Grad(loss, w)
		if err != nil || g[0].Eval() != nil {
			t.Fatal(what, err)
		}
		if got := floats(t, x.Reshape(-1)); !slices.Equal(got, want) {
			t.Errorf("%s: other bits", what)
		}
		if n := d.Stats().Recomputes; n != 0 {
			t.Errorf("%s: computed again %d times", what, n)
		}
	}
}

// TestNeededByNobody: a graph that the program drops without a call, or that ends with its scope,
// gives its memory back.
func TestNeededByNobody(t *testing.T) {
	d := open(t, "cpu:cache=off,compile=off")
	func() { mapped(t, d) }()
	collect(t, d)
	if n := d.Stats().LiveBytes; n > 64 { // the loss is left
		t.Errorf("%d bytes are left of a graph that nobody has", n)
	}
	err := d.Scope(func(sc *millrace.Scope) error {
		x := millrace.UniformOn(sc, millrace.Float32, 1, 30000)
		return autodiff.Watch(x).Exp().Sin().Sum().Eval()
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := d.Stats().LiveBytes; n > 64 {
		t.Errorf("%d bytes are left of a scope", n)
	}
}

// TestCheckpointOutsideOfScopes: Checkpoint keeps no value of its function, however long the
// function is.
func TestCheckpointOutsideOfScopes(t *testing.T) {
	d := open(t, "cpu:cache=off,compile=off")
	const n, size = 5, 4 * 30000
	w := autodiff.Watch(millrace.UniformOn(d, millrace.Float32, 1, size/4))
	f := func(in []*T) []*T { return []*T{times(100, in[0], (*T).Sin)} }
	y := []*T{w}
	for range n {
		y = autodiff.Checkpoint(f, y...)
	}
	loss := y[0].Sum()
	if _, err := millrace.Item[float32](loss); err != nil {
		t.Fatal(err)
	}
	collect(t, d)
	if got := d.Stats().LiveBytes / size; got > n+3 {
		t.Errorf("%d blocks are in memory for %d checkpoints", got, n)
	}
	g, err := autodiff.Grad(loss, w)
	if err != nil {
		t.Fatal(err)
	}
	again := autodiff.Watch(w)
	want, err := autodiff.Grad(times(n*100, again, (*T).Sin).Sum(), again)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(floats(t, g[0]), floats(t, want[0])) {
		t.Error("other bits than without checkpoints")
	}
}

func floats(t *testing.T, x *T) []float32 {
	t.Helper()
	v, err := millrace.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// collect runs the garbage collector and waits for the cleanups of unused tensors.
func collect(t testing.TB, d *millrace.Device) {
	t.Helper()
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond) // time for the cleanups
		if err := d.Sync(nil); err != nil {
			t.Fatal(err)
		}
	}
}
