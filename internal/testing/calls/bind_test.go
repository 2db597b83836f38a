package calls_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
)

// bindings opens a device for bound recordings.
func bindings(t testing.TB) (*millrace.Device, *millrace.Stream) {
	t.Helper()
	dev, err := millrace.Open("cpu:cache=off,threads=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev, dev.NewStream()
}

func floats(t testing.TB, x *millrace.Tensor, want ...float64) {
	t.Helper()
	got, err := millrace.Values[float64](x)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stepOf records a training step, w -= rate * (w*x - y), which returns the squared error.
func stepOf(w *millrace.Tensor) *millrace.Recording {
	return millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		x, y, rate := in[0], in[1], in[2]
		d := w.Mul(x).Sub(y)
		w.Set(w.Sub(d.Mul(rate)))
		return []*millrace.Tensor{d.Square()}, nil
	})
}

type trainer struct {
	dev           *millrace.Device
	s             *millrace.Stream
	w, x, y, rate *millrace.Tensor
	b             *millrace.BoundRecording
	was           []float64
}

func newTrainer(t testing.TB) *trainer {
	t.Helper()
	r := &trainer{was: []float64{1, 2, 3}}
	r.dev, r.s = bindings(t)
	r.w = millrace.FromSliceOn(r.dev, r.was, 3)
	r.x = millrace.FromSliceOn(r.dev, []float64{1, -1, 2}, 3)
	r.y = millrace.FromSliceOn(r.dev, []float64{4, 5, 6}, 3)
	r.rate = millrace.ScalarOn(r.dev, 0.5)
	var err error
	r.b, err = stepOf(r.w).BindWith(millrace.BindOptions{On: r.s}, r.x, r.y, r.rate)
	must(t, err)
	return r
}

// next computes in Go what one step computes.
func (r *trainer) next(rate float64) (w, loss []float64) {
	x, y := []float64{1, -1, 2}, []float64{4, 5, 6}
	for i := range r.was {
		d := r.was[i]*x[i] - y[i]
		loss = append(loss, d*d)
		r.was[i] -= d * rate
	}
	return r.was, loss
}

func (r *trainer) check(t testing.TB, rate float64) {
	t.Helper()
	w, loss := r.next(rate)
	floats(t, r.w, w...)
	floats(t, r.b.Results()[0], loss...)
}

// TestBind checks that a bound recording updates the tensors that it sets in place, and that new
// values can be written into its arguments. Binding itself has no visible effect.
func TestBind(t *testing.T) {
	r := newTrainer(t)
	floats(t, r.w, r.was...)
	for range 3 {
		must(t, r.b.Run())
		r.check(t, 0.5)
	}
	must(t, millrace.SetInput(r.b, 2, 0.25))
	floats(t, r.rate, 0.25)
	must(t, r.b.RunN(200))
	for range 199 {
		r.next(0.25)
	}
	r.check(t, 0.25)
	r.rate.Set(millrace.ScalarOn(r.dev, 0.125))
	must(t, r.b.Run())
	r.check(t, 0.125)
	must(t, r.b.Close())
	must(t, r.b.Close())
	floats(t, r.w, r.was...)
	if err := r.b.Run(); !errors.Is(err, millrace.ErrClosed) {
		t.Errorf("a run of what was closed: %v", err)
	}
	if n := r.dev.Stats().BoundRuns; n != 204 {
		t.Errorf("%d runs were counted", n)
	}
}

// TestBoundValuesOfOthers checks that other handles of a value keep it, whatever runs follow.
func TestBoundValuesOfOthers(t *testing.T) {
	r := newTrainer(t)
	must(t, r.b.Run())
	r.check(t, 0.5)
	w, loss := slices.Clone(r.was), millrace.FromSliceOn(r.dev, []float64{0, 0, 0}, 3)
	loss.Set(r.b.Results()[0]) // another handle of the value
	was, err := millrace.Values[float64](loss)
	must(t, err)
	view := r.w.Reshape(3, 1)  // of the same memory
	twice := r.w.Add(r.w)      // not computed yet
	other := r.dev.NewStream() // another stream
	alias := r.w.To(other).AddScalar(1)
	for range 3 {
		must(t, r.b.Run())
		r.check(t, 0.5)
	}
	floats(t, loss, was...)
	floats(t, view, w...)
	floats(t, twice, 2*w[0], 2*w[1], 2*w[2])
	floats(t, alias, w[0]+1, w[1]+1, w[2]+1)
	// The program may set a tensor that the recording sets, and may release results, which the
	// next run makes again.
	r.w.Set(millrace.FromSliceOn(r.dev, []float64{7, 8, 9}, 3))
	r.was = []float64{7, 8, 9}
	must(t, r.b.Run())
	r.check(t, 0.5)
	r.b.Results()[0].Release()
	must(t, r.b.RunN(2))
	r.next(0.5)
	w, _ = r.next(0.5)
	floats(t, r.w, w...)
}

func TestBindErrors(t *testing.T) {
	r := newTrainer(t)
	here := func(name string, err, is error) {
		t.Helper()
		if !errors.Is(err, is) || !strings.Contains(err.Error(), "bind_test.go") {
			t.Errorf("%s: %v", name, err)
		}
	}
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].AddScalar(1)}, nil
	})
	x := millrace.FromSliceOn(r.dev, []float64{1, 2}, 2)
	args := []*millrace.Tensor{x}
	_, err := rec.BindWith(millrace.BindOptions{On: r.s, Out: []*millrace.Tensor{millrace.FromSliceOn(r.dev, []float64{1}, 1)}}, args...)
	here("a result of another shape", err, millrace.ErrShape)
	_, err = rec.BindWith(millrace.BindOptions{On: r.s, Out: []*millrace.Tensor{millrace.FromSliceOn(r.dev, []float32{1, 2}, 2)}}, args...)
	here("a result of another dtype", err, millrace.ErrDType)
	_, err = rec.BindWith(millrace.BindOptions{On: r.s, Out: []*millrace.Tensor{nil, nil}}, args...)
	here("two tensors for a result", err, millrace.ErrShape)
	_, err = millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		_, err := millrace.Values[float64](in[0])
		return []*millrace.Tensor{in[0].AddScalar(1)}, err
	}).BindWith(millrace.BindOptions{On: r.s}, args...)
	here("a function that reads", err, millrace.ErrUnsupported)
	_, err = new(millrace.Recording).BindWith(millrace.BindOptions{On: r.s}, args...)
	if err == nil {
		t.Error("a Recording without a function was bound")
	}
	if err := (*millrace.BoundRecording)(nil).Run(); err == nil {
		t.Error("a nil one runs")
	}
	here("an argument of another dtype", millrace.SetInput(r.b, 2, float32(1)), millrace.ErrDType)
	here("an argument of another size", millrace.SetInput(r.b, 2, 1.0, 2.0), millrace.ErrShape)
	here("an argument that is not there", millrace.SetInput(r.b, 3, 1.0), millrace.ErrShape)

	y := millrace.FromSliceOn(r.dev, []float64{1, 2}, 2)
	b, err := rec.BindWith(millrace.BindOptions{On: r.s}, y)
	must(t, err)
	y.Set(millrace.FromSliceOn(r.dev, []float64{1}, 1))
	here("an argument that was set to another shape", b.Run(), millrace.ErrShape)
	y.Set(millrace.FromSliceOn(r.dev, []float64{3, 4}, 2))
	must(t, b.Run())
	floats(t, b.Results()[0], 4, 5)
	y.Release()
	here("an argument that was released", b.Run(), millrace.ErrReleased)
	here("writing to it", millrace.SetInput(b, 0, 1.0, 2.0), millrace.ErrReleased)

	r.w.Set(millrace.FromSliceOn(r.dev, []float64{3, 4}, 2))
	here("a weight that was set to another shape", r.b.Run(), millrace.ErrShape)
	x.Release()
	_, err = rec.BindWith(millrace.BindOptions{On: r.s}, args...)
	here("a released argument", err, millrace.ErrReleased)
	r.w.Set(millrace.FromSliceOn(r.dev, []float64{3, 4, 5}, 3))
	must(t, r.b.Run())
	must(t, r.dev.Close())
	here("a closed device", r.b.Run(), millrace.ErrClosed)
}

// TestBoundFault checks that an index out of range is reported with the line of the op. Tensors
// that depend on it carry the error until they are computed again.
func TestBoundFault(t *testing.T) {
	dev, s := bindings(t)
	table := millrace.FromSliceOn(dev, []float64{10, 20, 30}, 3)
	at := millrace.FromSliceOn(dev, []int32{0, 2}, 2)
	sum := millrace.ZerosOn(dev, millrace.Float64, 2)
	b, err := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		sum.Set(sum.Add(in[1]))
		return []*millrace.Tensor{table.Take(in[0], 0)}, nil
	}).BindWith(millrace.BindOptions{On: s}, at, millrace.ScalarOn(dev, 1.0))
	must(t, err)
	must(t, b.Run())
	floats(t, b.Results()[0], 10, 30)
	must(t, millrace.SetInput(b, 0, int32(1), int32(3)))
	if err := b.Run(); !errors.Is(err, millrace.ErrIndex) || !strings.Contains(err.Error(), "bind_test.go") {
		t.Errorf("an index out of range: %v", err)
	}
	if _, err := millrace.Values[float64](b.Results()[0]); !errors.Is(err, millrace.ErrIndex) {
		t.Errorf("its result: %v", err)
	}
	must(t, millrace.SetInput(b, 0, int32(1), int32(1)))
	must(t, b.Run())
	floats(t, b.Results()[0], 20, 20)
	floats(t, sum, 3, 3)
}

// TestBoundExchange checks results that cannot be written over the old value, because an index may
// be out of range. They are not copied: the tensor gets their memory.
func TestBoundExchange(t *testing.T) {
	testhook.SetExchange(true)
	defer testhook.SetExchange(false)
	dev, s := bindings(t)
	table := millrace.FromSliceOn(dev, []float64{10, 20, 30}, 3)
	w, sum := millrace.FromSliceOn(s, []float64{1, 2}, 2), millrace.FromSliceOn(s, []float64{0, 0}, 2)
	at := millrace.FromSliceOn(s, []int32{0, 2}, 2)
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		got := table.Take(in[0], 0)
		sum.Set(sum.Add(w).Add(got))
		w.Set(w.Add(got))
		return []*millrace.Tensor{w.MulScalar(2)}, nil
	})
	b, err := rec.BindWith(millrace.BindOptions{On: s}, at)
	must(t, err)
	must(t, b.Run())
	was := [2]float64{11, 32}
	total := [2]float64{11, 32}
	next := func() {
		for i, x := range []float64{10, 30} {
			total[i] += was[i] + x
			was[i] += x
		}
	}
	run := func(n int) {
		t.Helper()
		must(t, b.RunN(n))
		for range n {
			next()
		}
		floats(t, w, was[:]...)
		floats(t, sum, total[:]...)
		floats(t, b.Results()[0], 2*was[0], 2*was[1])
	}
	run(1)
	launches, live := dev.Stats().Runtime.Launches, dev.Stats().LiveBytes
	run(10)
	if n := (dev.Stats().Runtime.Launches - launches) / 10; n != 1 {
		t.Errorf("%d launches in a run", n)
	}
	if n := dev.Stats().LiveBytes; n != live {
		t.Errorf("%d live bytes, before %d", n, live)
	}
	if n := testing.AllocsPerRun(20, func() { must(t, b.Run()); next() }); n != 0 {
		t.Errorf("%v allocations in a run", n)
	}

	view, old := w.Reshape(2, 1), was // the view keeps the old value
	run(1)
	run(2)
	floats(t, view, old[:]...)
	view.Release()

	other, err := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].AddScalar(1)}, nil
	}).BindWith(millrace.BindOptions{On: s}, w)
	must(t, err)
	for range 12 {
		run(1)
		must(t, other.Run())
		floats(t, other.Results()[0], was[0]+1, was[1]+1)
	}
	must(t, other.Close())
	run(20)

	must(t, millrace.SetInput(b, 0, int32(1), int32(3)))
	if err := b.Run(); !errors.Is(err, millrace.ErrIndex) {
		t.Errorf("an index out of range: %v", err)
	}
	for _, x := range []*millrace.Tensor{w, sum, b.Results()[0]} {
		if _, err := millrace.Values[float64](x); !errors.Is(err, millrace.ErrIndex) {
			t.Errorf("what depends on it: %v", err)
		}
	}
	was, total = [2]float64{5, 6}, [2]float64{7, 8}
	w.Set(millrace.FromSliceOn(s, was[:], 2))
	sum.Set(millrace.FromSliceOn(s, total[:], 2))
	must(t, millrace.SetInput(b, 0, int32(0), int32(2)))
	for range 20 {
		run(1)
	}
	live = dev.Stats().LiveBytes
	must(t, b.Close())
	floats(t, w, was[:]...)
	floats(t, sum, total[:]...)
	if n := dev.Stats().LiveBytes; n >= live {
		t.Errorf("%d live bytes after Close, before %d", n, live)
	}
}

// TestBoundChains checks that results may be arguments, and may share memory with the operands of
// the next bound recording.
func TestBoundChains(t *testing.T) {
	dev, s := bindings(t)
	double := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].Add(in[0]), in[0].MulScalar(1)}, nil
	})
	x, y := millrace.FromSliceOn(dev, []float64{1, 3}, 2), millrace.FromSliceOn(s, []float64{0, 0}, 2)
	a, err := double.BindWith(millrace.BindOptions{On: s, Out: []*millrace.Tensor{x, y}}, x)
	must(t, err)
	b, err := double.BindWith(millrace.BindOptions{On: s}, y)
	must(t, err)
	for i := range 5 {
		must(t, a.Run())
		must(t, b.Run())
		f := float64(int(1) << i)
		floats(t, x, 2*f, 6*f)
		floats(t, y, f, 3*f)
		floats(t, b.Results()[0], 2*f, 6*f)
	}
	// The swap must read both arguments before it writes one of them.
	swap := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[1], in[0]}, nil
	})
	p, q := millrace.ScalarOn(s, 1.0), millrace.ScalarOn(s, 2.0)
	c, err := swap.BindWith(millrace.BindOptions{On: s, Out: []*millrace.Tensor{p, q}}, p, q)
	must(t, err)
	must(t, c.RunN(3))
	floats(t, p, 2)
	floats(t, q, 1)
}

// TestBoundConcurrently checks that several goroutines may run, read and write at once.
func TestBoundConcurrently(t *testing.T) {
	dev, s := bindings(t)
	n := millrace.ZerosOn(dev, millrace.Float64, 2)
	b, err := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		n.Set(n.Add(in[0]))
		return []*millrace.Tensor{n.MulScalar(2)}, nil
	}).BindWith(millrace.BindOptions{On: s}, millrace.ScalarOn(dev, 1.0))
	must(t, err)
	var wait sync.WaitGroup
	const each = 200
	for i := range 4 {
		wait.Go(func() {
			other := dev.NewStream()
			for k := range each {
				if err := b.Run(); err != nil {
					t.Error(err)
				}
				if (k+i)%7 == 0 {
					v := n.To(other).AddScalar(0)
					got, err := millrace.Values[float64](v)
					if err != nil || got[0] != got[1] {
						t.Errorf("half a run was seen: %v %v", got, err)
					}
				}
			}
		})
	}
	wait.Wait()
	floats(t, n, 4*each, 4*each)
	floats(t, b.Results()[0], 8*each, 8*each)
}

// TestBindPending binds a recording that reads and sets tensors that are not computed yet.
// Binding computes them and keeps their values. Arguments may be views, and may be set to views.
func TestBindPending(t *testing.T) {
	dev, s := bindings(t)
	for name, at := range map[string]millrace.Place{"device": dev, "stream": s} {
		w := millrace.FullOn(at, millrace.Float64, 3, 2, 2).AddScalar(1)
		x := millrace.FromSliceOn(at, []float64{1, 2, 3, 4}, 2, 2).T()
		b, err := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			was := w.T()
			w.Set(w.Add(in[0]))
			return []*millrace.Tensor{was}, nil
		}).BindWith(millrace.BindOptions{On: s}, x)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		floats(t, w, 4, 4, 4, 4)
		must(t, b.Run())
		floats(t, w, 5, 7, 6, 8)
		floats(t, b.Results()[0], 4, 4, 4, 4)
		x.Set(millrace.FromSliceOn(dev, []float64{1, 2, 3, 4}, 2, 2).Flip(1))
		w.Set(w.T())
		must(t, b.Run())
		floats(t, w, 7, 7, 11, 11)
		floats(t, b.Results()[0], 5, 7, 6, 8)
		must(t, b.Close())
	}
}

// TestBoundClosedMeanwhile checks that runs, closing the device and closing the bound recording
// may happen at once. Runs then end with an error.
func TestBoundClosedMeanwhile(t *testing.T) {
	for range 20 {
		r := newTrainer(t)
		big, err := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			return []*millrace.Tensor{in[0].MatMul(in[0]).Softmax(1)}, nil
		}).BindWith(millrace.BindOptions{On: r.s}, millrace.OnesOn(r.dev, millrace.Float64, 40, 40))
		must(t, err)
		var wait sync.WaitGroup
		for _, b := range []*millrace.BoundRecording{r.b, r.b, big, big} {
			wait.Go(func() {
				for {
					if err := b.RunN(7); err != nil {
						if !errors.Is(err, millrace.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		wait.Go(func() { _ = big.Close() })
		wait.Go(func() { _ = r.dev.Close() })
		wait.Wait()
		_ = r.b.Close()
	}
}

// TestBindCarriesErrors checks that Bind returns, with its line, the error of a result or of a
// tensor that the function sets.
func TestBindCarriesErrors(t *testing.T) {
	dev, s := bindings(t)
	x := millrace.FromSliceOn(s, []float64{1, 2})
	w := millrace.FromSliceOn(s, []float64{1, 2})
	gone := millrace.FromSliceOn(s, []float64{1, 2})
	must(t, w.Eval())
	gone.Release()
	shut, err := millrace.Open("cpu")
	must(t, err)
	closed := millrace.FromSliceOn(shut, []float64{1, 2})
	must(t, shut.Close())
	bad := func(x *millrace.Tensor) *millrace.Tensor { return x.Add(millrace.OnesOn(s, millrace.Float64, 3)) }
	for _, c := range []struct {
		name string
		f    func(x *millrace.Tensor) *millrace.Tensor
		is   error
	}{
		{"a shape", bad, millrace.ErrShape},
		{"a shape before", func(x *millrace.Tensor) *millrace.Tensor { return bad(x).Exp().Sum() }, millrace.ErrShape},
		{"a dtype", func(x *millrace.Tensor) *millrace.Tensor { return x.Mul(millrace.OnesOn(s, millrace.Int32, 2)) }, millrace.ErrDType},
		{"a released operand", func(x *millrace.Tensor) *millrace.Tensor { return x.Mul(gone) }, millrace.ErrReleased},
		{"a closed device", func(x *millrace.Tensor) *millrace.Tensor { return x.Mul(closed) }, millrace.ErrUnsupported},
		{"what is set", func(x *millrace.Tensor) *millrace.Tensor { w.Set(bad(x)); return x.Exp() }, millrace.ErrShape},
	} {
		r := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			return []*millrace.Tensor{c.f(in[0])}, nil
		})
		if _, err := r.Bind(x); !errors.Is(err, c.is) || !strings.Contains(err.Error(), "bind_test.go") || strings.Contains(err.Error(), "run again") {
			t.Errorf("%s: %v", c.name, err)
		}
		floats(t, w, 1, 2)
	}
	r := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		bad(in[0]) // this result is not read
		return []*millrace.Tensor{in[0].Exp()}, nil
	})
	b, err := r.Bind(x)
	must(t, err)
	must(t, b.Run())
	must(t, b.Close())
	must(t, dev.Close())
	_, err = r.Bind(x)
	if !errors.Is(err, millrace.ErrClosed) {
		t.Errorf("on a closed device: %v", err)
	}
}
