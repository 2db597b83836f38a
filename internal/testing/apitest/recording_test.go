package apitest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// TestRandomRecordings: random programs as recordings give the oracle's bits, for new arguments
// each time, given away or not, on any stream and on several at once.
func TestRandomRecordings(t *testing.T) {
	specs := append([]string{"ref", "ref:queue=3"}, specs...)
	devices := make([]*millrace.Device, len(specs))
	for i, s := range specs {
		devices[i] = openSpec(t, s)
	}
	n := count(t, "PROGRAMS", programs)
	repeated := 0
	for seed := range uint64(n) {
		c := progen.Config{MaxElems: 1000, Groups: []progen.Group{0, rowGroups}[seed%2]}
		if seed%8 == 7 {
			c.Ops = 80
		}
		prog := progen.New(11<<32+seed, c)
		i := int(seed) % len(specs)
		calls, err := recorded(devices[i], prog, seed)
		if err == nil {
			if calls == 1 {
				repeated++
			}
			continue
		}
		small := progen.Shrink(prog, func(p *ir.Graph) bool {
			d, err := millrace.Open(specs[i])
			if err != nil {
				return false
			}
			defer d.Close()
			_, err = recorded(d, p, seed)
			return err != nil
		})
		t.Errorf("seed %d on %s: %v\nshrunk: %v", seed, specs[i], err, small)
	}
	// One in four reads a value in between.
	if repeated < n/2 {
		t.Errorf("%d of %d programs were run again without being called", repeated, n)
	}
	replays, prepared := int64(0), int64(0)
	for _, d := range devices {
		replays += d.Stats().Replays
		prepared += d.Stats().Runtime.Prepared
	}
	if replays < int64(4*n) {
		t.Errorf("%d replays of %d programs", replays, n)
	}
	if prepared < int64(n) {
		t.Errorf("%d launches were prepared in %d programs", prepared, n)
	}
}

// recorded runs a program as a recording twelve times, the last four at once, and counts how often
// it was recorded.
func recorded(dev *millrace.Device, prog *ir.Graph, seed uint64) (calls int, err error) {
	rng := rand.New(rand.NewPCG(seed, 3))
	reads, evals := rng.IntN(4) == 0, rng.IntN(2) == 0
	var mu sync.Mutex
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		mu.Lock()
		calls++
		mu.Unlock()
		r := NewRunner(sc, prog, nil)
		r.Tensors = slices.Clone(in)
		at := rand.New(rand.NewPCG(seed, 4))
		for i := range prog.Nodes {
			r.Step(i)
			last := r.Tensors[len(r.Tensors)-1]
			if prog.Nodes[i].Op == ir.Release || at.IntN(8) > 0 {
				continue
			}
			if evals {
				if err := last.Eval(); err != nil {
					return nil, err
				}
			} else if reads {
				if _, err := Bytes(last); err != nil {
					return nil, err
				}
			}
		}
		var out []*millrace.Tensor
		for _, id := range prog.Outputs {
			out = append(out, r.Tensors[id])
		}
		return append(out, out[0]), nil // one of them twice
	})
	run := func(s *millrace.Stream, seed uint64) error {
		inputs := progen.Inputs(prog, seed)
		want, err := ir.EvalTensors(prog, inputs)
		if err != nil {
			return fmt.Errorf("oracle: %w", err)
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		in, give := make([]*millrace.Tensor, len(inputs)), make([]bool, len(inputs))
		for i, data := range inputs {
			place := []millrace.Place{dev, s, dev.NewStream()}[rng.IntN(3)]
			in[i], give[i] = FromBytes(place, prog.Inputs[i], data), rng.IntN(2) == 0
		}
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s, Give: give}, in...)
		if err != nil {
			return err
		}
		for i, id := range append(slices.Clone(prog.Outputs), prog.Outputs[0]) {
			if err := compare(out[i], want[id]); err != nil {
				return fmt.Errorf("result %d: %w", i, err)
			}
			out[i].Release() // the others stay
		}
		for i, t := range in {
			if give[i] {
				if err := t.Err(); !errors.Is(err, millrace.ErrReleased) || !strings.Contains(err.Error(), "given away") {
					return fmt.Errorf("argument %d was given away: %v", i, err)
				}
			} else if err := compare(t, want[i]); err != nil {
				return fmt.Errorf("argument %d: %w", i, err)
			}
		}
		return nil
	}
	streams := []*millrace.Stream{dev.NewStream(), dev.NewStream()}
	for i := range 8 {
		if err := run(streams[i/2%2], seed+uint64(i)); err != nil {
			return calls, fmt.Errorf("run %d: %w", i, err)
		}
	}
	var wg sync.WaitGroup
	var errs [2]error
	for i, s := range streams {
		wg.Go(func() { errs[i] = errors.Join(run(s, seed+10+uint64(i)), run(s, seed+20+uint64(i))) })
	}
	wg.Wait()
	return calls, errors.Join(errs[0], errs[1])
}

// TestRecordingArguments: arguments of other dtypes, shapes and layouts are recorded again; tensors
// from elsewhere stay those of the first run; results may be arguments and the same tensor several
// times.
func TestRecordingArguments(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	s := dev.NewStream()
	two := millrace.FullOn(dev, millrace.Float32, 2)
	calls := 0
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		calls++
		y := in[0].Mul(two)
		return []*millrace.Tensor{y, in[0], y, two, in[1]}, nil
	})
	vector := func(xs ...float32) *millrace.Tensor { return millrace.FromSliceOn(dev, xs, len(xs)) }
	matrix := millrace.FromSliceOn(dev, []float32{1, 2, 3, 4}, 2, 2)
	steps := []struct {
		in    []*millrace.Tensor
		want  [][]float32
		calls int
	}{
		{[]*millrace.Tensor{vector(1, 2), vector(5)}, [][]float32{{2, 4}, {1, 2}, {2, 4}, {2}, {5}}, 1},
		{[]*millrace.Tensor{vector(3, 4), vector(6)}, [][]float32{{6, 8}, {3, 4}, {6, 8}, {2}, {6}}, 1},
		{[]*millrace.Tensor{vector(3, 4, 5), vector(6)}, [][]float32{{6, 8, 10}, {3, 4, 5}, {6, 8, 10}, {2}, {6}}, 2},
		{[]*millrace.Tensor{vector(7, 8, 9), vector(6)}, [][]float32{{14, 16, 18}, {7, 8, 9}, {14, 16, 18}, {2}, {6}}, 2},
		{[]*millrace.Tensor{matrix, vector(1)}, [][]float32{{2, 4, 6, 8}, {1, 2, 3, 4}, {2, 4, 6, 8}, {2}, {1}}, 3},
		{[]*millrace.Tensor{matrix.Permute(1, 0), vector(1)}, [][]float32{{2, 6, 4, 8}, {1, 3, 2, 4}, {2, 6, 4, 8}, {2}, {1}}, 4},
		{[]*millrace.Tensor{matrix.Permute(1, 0), vector(1)}, [][]float32{{2, 6, 4, 8}, {1, 3, 2, 4}, {2, 6, 4, 8}, {2}, {1}}, 4},
		{[]*millrace.Tensor{two, two}, [][]float32{{4}, {2}, {4}, {2}, {2}}, 5},
		{[]*millrace.Tensor{millrace.FullOn(dev, millrace.Float32, 3), two}, [][]float32{{6}, {3}, {6}, {2}, {2}}, 5},
	}
	for i, c := range steps {
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, c.in...)
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		for k, w := range c.want {
			if got, err := millrace.Values[float32](out[k]); err != nil || !slices.Equal(got, w) {
				t.Errorf("run %d, result %d: %v, %v; want %v", i, k, got, err, w)
			}
			out[k].Release()
		}
		if calls != c.calls {
			t.Errorf("run %d: called %d times, want %d", i, calls, c.calls)
		}
	}
	if got, err := millrace.Item[float32](two); err != nil || got != 2 {
		t.Errorf("the tensor from elsewhere is %v, %v", got, err)
	}
}

// TestRecordingThatReads: a branch on a value is evaluated again each time.
func TestRecordingThatReads(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		x, err := millrace.Item[float32](in[0].AddScalar(1))
		if err != nil || x > 0 {
			return []*millrace.Tensor{in[0].MulScalar(10)}, err
		}
		return []*millrace.Tensor{in[0].Neg()}, nil
	})
	s := dev.NewStream()
	for _, x := range []float32{1, -5, 2, -7} {
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, millrace.ScalarOn(dev, x))
		if err != nil {
			t.Fatal(err)
		}
		want := 10 * x
		if x < 0 {
			want = -x
		}
		if got, err := millrace.Item[float32](out[0]); err != nil || got != want {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}

// TestRecordingSteadyState: the cost of a hot recording does not grow with the number of runs: no
// plans, no memory, and donated memory becomes that of results.
func TestRecordingSteadyState(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait,queue=8")
	const n = 1 << 12
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		w, g := in[0], in[1]
		for range 6 {
			next := w.Sub(g.Mul(w).Sum().MulScalar(1e-3))
			w.Release()
			w = next
		}
		return []*millrace.Tensor{w}, nil
	})
	s := dev.NewStream()
	w, g := millrace.UniformOn(dev, millrace.Float32, 1, n), millrace.UniformOn(dev, millrace.Float32, 2, n)
	step := func() {
		t.Helper()
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s, Give: []bool{true, false}}, w, g)
		if err != nil {
			t.Fatal(err)
		}
		w = out[0]
	}
	for range 3 {
		step()
	}
	before := dev.Stats()
	const turns = 50
	for range turns {
		step()
	}
	after := dev.Stats()
	if after.LiveBytes != before.LiveBytes || after.Plans != before.Plans || after.Explorations != before.Explorations {
		t.Errorf("live bytes %d, plans %d, explorations %d; before %d, %d, %d", after.LiveBytes, after.Plans, after.Explorations,
			before.LiveBytes, before.Plans, before.Explorations)
	}
	if got := after.InPlace - before.InPlace; got < turns {
		t.Errorf("%d results in place in %d turns", got, turns)
	}
}

func TestBadRecordings(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	s := dev.NewStream()
	boom := errors.New("boom")
	one := millrace.ScalarOn(dev, float32(1))
	identity := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) { return in, nil })
	gone := millrace.ScalarOn(dev, float32(1))
	gone.Release()
	for name, c := range map[string]struct {
		rec  *millrace.Recording
		s    *millrace.Stream
		in   []*millrace.Tensor
		give []bool
		want any
	}{
		"no stream":   {identity, new(millrace.Stream), nil, nil, "nil"},
		"no function": {millrace.NewRecording(nil), s, nil, nil, "nil"},
		"nil":         {nil, s, nil, nil, "nil"},
		"marks":       {identity, s, []*millrace.Tensor{one}, []bool{true, false}, millrace.ErrShape},
		"nil tensor":  {identity, s, []*millrace.Tensor{nil}, nil, "nil"},
		"released":    {identity, s, []*millrace.Tensor{gone}, nil, millrace.ErrReleased},
		"its error": {millrace.NewRecording(func(*millrace.Scope, []*millrace.Tensor) ([]*millrace.Tensor, error) { return nil, boom }),
			s, []*millrace.Tensor{one}, nil, boom},
		"nil result": {millrace.NewRecording(func(*millrace.Scope, []*millrace.Tensor) ([]*millrace.Tensor, error) {
			return []*millrace.Tensor{nil}, nil
		}),
			s, []*millrace.Tensor{one}, nil, "nil"},
		"bad op": {millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			return []*millrace.Tensor{in[0].Reshape(3)}, nil
		}), s, []*millrace.Tensor{one}, nil, millrace.ErrShape},
	} {
		for range 2 {
			out, err := c.rec.RunWith(nil, millrace.RunOptions{On: c.s, Give: c.give}, c.in...)
			if err == nil || out != nil {
				t.Errorf("%s: %v, %v", name, out, err)
				continue
			}
			switch want := c.want.(type) {
			case error:
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			case string:
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", name, err, want)
				}
			}
		}
	}
	if _, err := identity.RunWith(nil, millrace.RunOptions{On: s}, one); err != nil {
		t.Errorf("the stream is of no use after errors: %v", err)
	}
}

// TestRecordingPanics: a function that panics leaves the stream unchanged.
func TestRecordingPanics(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait")
	fresh, used := dev.NewStream(), dev.NewStream()
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		in[0].AddScalar(1)
		panic("boom")
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		rec.Run(nil, millrace.FromSliceOn(used, []float32{1, 2}, 2))
	}()
	// Results of a recording are written; elsewhere only values that are read.
	var written [3]int64
	var ys [3]*millrace.Tensor
	for i, s := range []*millrace.Stream{used, fresh, used} { // the first may wait for earlier work
		before := dev.Stats().Runtime.BytesWritten
		x := millrace.OnesOn(s, millrace.Float32, 1000)
		y := x.AddScalar(1)
		if err := y.Sum().Eval(); err != nil {
			t.Error(err)
		}
		written[i] = dev.Stats().Runtime.BytesWritten - before
		ys[i] = y
	}
	for _, y := range ys {
		if got, err := millrace.Values[float32](y); err != nil || got[999] != 2 {
			t.Errorf("%v", err)
		}
	}
	if written[2] != written[1] {
		t.Errorf("%d bytes written after a panic, %d on a fresh stream", written[2], written[1])
	}
}

// TestRecordingWithin: a recording within another one is played while the outer one records.
func TestRecordingWithin(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	s := dev.NewStream()
	inner := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].MulScalar(2).CumSum(0)}, nil
	})
	outer := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		mid, err := inner.RunWith(nil, millrace.RunOptions{On: s}, in[0].AddScalar(1))
		if err != nil {
			return nil, err
		}
		return []*millrace.Tensor{mid[0].Sub(in[0])}, nil
	})
	for turn := range 4 {
		x := float32(turn)
		out, err := outer.Run(nil, millrace.FromSliceOn(s, []float32{x, 2 * x}, 2))
		if err != nil {
			t.Fatal(err)
		}
		got, err := millrace.Values[float32](out[0])
		if want := []float32{2*x + 2 - x, 2*x + 2 + 4*x + 2 - 2*x}; err != nil || !slices.Equal(got, want) {
			t.Errorf("turn %d: %v, want %v (%v)", turn, got, want, err)
		}
	}
}
