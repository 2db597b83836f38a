package apitest

import (
	"context"
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestReplayedSteps: a repeated training step gives the bits of calling the function, in reserved
// memory.
func TestReplayedSteps(t *testing.T) {
	const steps = 12
	for _, spec := range []string{"cpu:compile=off,explore=wait", "cpu:compile=off,explore=wait,queue=16,threads=2", "cpu:threads=2,tier=0,explore=wait"} {
		for name, of := range map[string]func(at millrace.Place) trained{
			"makemore": func(at millrace.Place) trained { return newMakemore(at, 8, 5) },
			"small":    func(at millrace.Place) trained { return newSmall(at, 300) },
		} {
			if name == "makemore" && strings.Contains(spec, "queue") {
				continue // if a segment ends between a weight's transpose and its Set, the function is called each time
			}
			dev := openSpec(t, spec)
			s := dev.NewStream()
			called, replayed := of(s), of(s)
			rec := millrace.NewRecording(replayed.step)
			for i := range uint64(steps) {
				in := called.input(s, i)
				var want []*tensor
				if err := s.Scope(func(sc *millrace.Scope) error {
					var args []*tensor
					for _, x := range in {
						args = append(args, x.To(sc))
					}
					out, err := called.step(sc, args)
					want = append(want, sc.Keep(out[0]))
					return err
				}); err != nil {
					t.Fatal(err)
				}
				got, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
				if err != nil {
					t.Fatal(err)
				}
				want, got = append(want, called.weights()...), append(got, replayed.weights()...)
				for k := range want {
					if err := sameValues(got[k], want[k]); err != nil {
						t.Fatalf("%s on %s: step %d, %d of loss and states: %v", name, spec, i, k, err)
					}
				}
			}
			if got := dev.Stats(); got.Replays < steps-4 || got.Recordings != 1 {
				t.Errorf("%s on %s: %d replays, %d recordings of %d steps", name, spec, got.Replays, got.Recordings, steps)
			}
			if n := dev.Stats().Runtime.Prepared; n < 2*(steps-5) {
				t.Errorf("%s on %s: %d launches were prepared in %d steps", name, spec, n, steps)
			}
			rec.Release()
		}
	}
}

func sameValues(got, want *tensor) error {
	g, err := millrace.Values[float32](got)
	if err != nil {
		return err
	}
	w, err := millrace.Values[float32](want)
	if err != nil {
		return err
	}
	return sameBits(g, w)
}

// TestReplaysAreFlat: ten thousand steps allocate nothing from the system, and leave nothing
// behind.
func TestReplaysAreFlat(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait")
	s := dev.NewStream()
	m := newMakemore(s, 4, 2)
	rec := millrace.NewRecording(m.step)
	in := m.input(s, 1)
	step := func() {
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
		if err != nil {
			t.Fatal(err)
		}
		out[0].Release()
	}
	for range 5 {
		step()
	}
	goruntime.GC()
	turns := 10000
	if testing.Short() {
		turns = 1000
	}
	was, goroutines := dev.Stats(), goruntime.NumGoroutine()
	for range turns {
		step()
	}
	now := dev.Stats()
	if now.LiveBytes > was.LiveBytes || now.Runtime.AllocBytes+now.Runtime.PoolBytes != was.Runtime.AllocBytes+was.Runtime.PoolBytes {
		t.Errorf("live bytes %d, of the system %d; before %d, %d", now.LiveBytes, now.Runtime.AllocBytes+now.Runtime.PoolBytes,
			was.LiveBytes, was.Runtime.AllocBytes+was.Runtime.PoolBytes)
	}
	if a, b := now.Runtime.Allocs-now.Runtime.PoolHits, was.Runtime.Allocs-was.Runtime.PoolHits; a != b {
		t.Errorf("%d allocations that the pool had no memory for", a-b)
	}
	if now.Replays-was.Replays != int64(turns) || now.Explorations != was.Explorations || now.Layouts != was.Layouts {
		t.Errorf("%d replays, %d explorations, %d layouts", now.Replays-was.Replays, now.Explorations-was.Explorations, now.Layouts-was.Layouts)
	}
	if n := goruntime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, before %d", n, goroutines)
	}
	rec.Release()
}

// TestReplaysGiveMemoryBack: a Recording's memory is freed with it, by Release, and after it is
// dropped without a release.
func TestReplaysGiveMemoryBack(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait")
	s := dev.NewStream()
	x := millrace.UniformOn(s, millrace.Float32, 1, 64, 64)
	if err := x.Eval(); err != nil {
		t.Fatal(err)
	}
	live := func() int64 {
		if err := s.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		return dev.Stats().LiveBytes
	}
	before := live()
	run := func() *millrace.Recording {
		rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
			y := in[0].MatMul(in[0]).Softmax(1) // an intermediate result
			return []*tensor{y.MatMul(in[0]).Sum()}, nil
		})
		for range 5 {
			out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, x)
			if err != nil {
				t.Fatal(err)
			}
			out[0].Release()
		}
		return rec
	}
	rec := run()
	if live() <= before || dev.Stats().Replays == 0 {
		t.Errorf("%d bytes are kept by %d replays", live()-before, dev.Stats().Replays)
	}
	rec.Release()
	if got := live(); got != before {
		t.Errorf("%d bytes are left behind Release", got-before)
	}
	run()
	defer goruntime.KeepAlive(x)
	for i := 0; live() != before; i++ {
		if i == 20 {
			t.Fatalf("%d bytes of a dropped Recording are left", live()-before)
		}
		goruntime.GC()
		time.Sleep(time.Millisecond)
	}
}

// TestReplaysYieldMemory: memory kept between runs is available to others that need it.
func TestReplaysYieldMemory(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait,tune=off,memory=12000000")
	s := dev.NewStream()
	const n = 500
	x := millrace.UniformOn(s, millrace.Float32, 1, n, n) // 1 MB each
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return []*tensor{in[0].MatMul(in[0]).MatMul(in[0]).MatMul(in[0]).Sum()}, nil
	})
	defer rec.Release()
	var first *tensor
	run := func() {
		t.Helper()
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, x)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out[0]
		}
		if err := sameValues(out[0], first); err != nil {
			t.Error(err)
		}
	}
	for range 4 {
		run()
	}
	kept := dev.Stats()
	if kept.Replays == 0 || kept.LiveBytes < 2*4*n*n {
		t.Fatalf("%d replays keep %d bytes", kept.Replays, kept.LiveBytes)
	}
	var all []*tensor
	for i := range 9 {
		y := millrace.FullOn(s, millrace.Float32, float64(i), n, n)
		if err := y.Eval(); err != nil {
			t.Fatalf("%d MB more: %v", i+1, err)
		}
		all = append(all, y)
	}
	for i, y := range all {
		if err := wantAll(y, n*n, float32(i)); err != nil {
			t.Error(err)
		}
		y.Release()
	}
	for range 4 {
		run()
	}
}

// TestReplayFails: a run with an index out of range is an error. Tensors that it sets carry the
// error if they depend on the failure, the stream continues, and the next good run is right.
func TestReplayFails(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait,queue=4")
	s := dev.NewStream()
	table := millrace.FromSliceOn(s, []float32{1, 2, 3}, 3)
	a, b := millrace.ZerosOn(s, millrace.Float32, 2), millrace.ZerosOn(s, millrace.Float32, 2)
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		a.Set(a.AddScalar(1)) // does not depend on the indices
		x := table.Take(in[0], 0)
		for range 6 {
			x = x.Mul(x).Sqrt()
		}
		b.Set(b.Add(x))
		return []*tensor{x.Sum()}, nil
	})
	run := func(at ...int32) error {
		out, err := rec.Run(nil, millrace.FromSliceOn(s, at, 2))
		if err == nil {
			_, err = millrace.Item[float32](out[0])
			out[0].Release()
		}
		return err
	}
	for range 4 {
		if err := run(0, 1); err != nil {
			t.Fatal(err)
		}
	}
	for turn := range 3 {
		replays := dev.Stats().Replays
		if replays == 0 {
			t.Fatal("nothing was replayed")
		}
		if err := run(0, 7); !errors.Is(err, millrace.ErrIndex) {
			t.Fatalf("turn %d: %v", turn, err)
		}
		if turn == 0 && dev.Stats().Replays == replays {
			t.Error("what failed was no replay")
		}
		if err := b.Err(); !errors.Is(err, millrace.ErrIndex) {
			t.Errorf("turn %d: what depends on the index is %v", turn, err)
		}
		if got, err := millrace.Values[float32](a); err != nil || got[0] != float32(4+5*turn+1) {
			t.Errorf("turn %d: what does not is %v, %v", turn, got, err)
		}
		b.Set(millrace.FullOn(s, millrace.Float32, 10, 2))
		for range 4 {
			if err := run(2, 2); err != nil {
				t.Fatalf("turn %d, afterwards: %v", turn, err)
			}
		}
		if err := wantAll(b, 2, 22); err != nil {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
}

// TestReplaysAtOnce: several goroutines run one Recording on separate streams, and release it
// meanwhile.
func TestReplaysAtOnce(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait,queue=8,threads=2")
	w := millrace.UniformOn(dev, millrace.Float32, 1, 16, 16)
	if err := w.Eval(); err != nil {
		t.Fatal(err)
	}
	f := func(x *tensor) *tensor {
		for range 3 {
			x = x.MatMul(w).Tanh().AddScalar(0.25)
		}
		return x
	}
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) { return []*tensor{f(in[0])}, nil })
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			s := dev.NewStream()
			for i := range 40 {
				x := millrace.FullOn(s, millrace.Float32, float64(g)+float64(i)/40, 3, 16)
				want := f(x)
				out, err := rec.RunWith(nil, millrace.RunOptions{On: s, Give: []bool{i%3 == 0}}, x)
				if err != nil {
					t.Error(err)
					return
				}
				if err := sameValues(out[0], want); err != nil {
					t.Errorf("goroutine %d, run %d: %v", g, i, err)
				}
				out[0].Release()
				if g == 0 && i%13 == 12 {
					rec.Release()
				}
			}
		})
	}
	wg.Wait()
	if dev.Stats().Replays < 60 {
		t.Errorf("%d replays", dev.Stats().Replays)
	}
}

// TestStartedSteps: steps that are started without waiting give the same results, in order, however
// the program waits, gives arguments away and releases results in between.
func TestStartedSteps(t *testing.T) {
	for _, spec := range []string{"cpu:compile=off,explore=wait,threads=2", "cpu:compile=off,explore=wait,queue=16", "cpu:compile=off"} {
		dev := openSpec(t, spec)
		s := dev.NewStream()
		called, started := newSmall(s, 200), newSmall(s, 200)
		rec := millrace.NewRecording(started.step)
		rng := rand.New(rand.NewPCG(1, 2))
		var want, got []*tensor
		for i := range uint64(60) {
			in := called.input(s, i)
			if err := s.Scope(func(sc *millrace.Scope) error {
				out, err := called.step(sc, []*tensor{in[0].To(sc)})
				want = append(want, sc.Keep(out[0]))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			wait := rng.IntN(5) == 0
			out, err := rec.RunWith(nil, millrace.RunOptions{On: s, Give: []bool{rng.IntN(2) == 0}, NoWait: !wait}, in...)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, out[0])
			if i == 20 { // better plans exist by now, or never will
				if err := dev.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(7) == 0 {
				if err := sameValues(out[0], want[i]); err != nil {
					t.Fatalf("%s: step %d: %v", spec, i, err)
				}
			}
			if rng.IntN(20) == 0 { // a step reads the values that the previous one set
				for _, w := range [][]*tensor{called.weights(), started.weights()} {
					w[3].Set(w[3].MulScalar(0.5))
				}
			}
		}
		want, got = append(want, called.weights()...), append(got, started.weights()...)
		for i := range want {
			if err := sameValues(got[i], want[i]); err != nil {
				t.Fatalf("%s: %d of losses and weights: %v", spec, i, err)
			}
		}
		if got := dev.Stats(); got.Replays < 20 || got.Recordings != 1 {
			t.Errorf("%s: %d replays, %d recordings", spec, got.Replays, got.Recordings)
		}
		rec.Release()
	}
}

// TestStartFails: the failure of a started run is carried by dependent results, and by the runs
// after it; the stream reports it.
func TestStartFails(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off,explore=wait")
	s := dev.NewStream()
	table := millrace.FromSliceOn(s, []float32{1, 2, 3}, 3)
	sum := millrace.ZerosOn(s, millrace.Float32, 2)
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		x := table.Take(in[0], 0)
		sum.Set(sum.Add(x))
		return []*tensor{x.Sum(), in[0].AddScalar(1)}, nil
	})
	start := func(at ...int32) []*tensor {
		t.Helper()
		out, err := rec.RunWith(nil, millrace.RunOptions{Give: []bool{true}, NoWait: true}, millrace.FromSliceOn(s, at, 2))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for range 4 {
		start(0, 1)
	}
	bad := start(0, 9)
	if _, err := millrace.Values[float32](bad[0]); !errors.Is(err, millrace.ErrIndex) {
		t.Errorf("the result of a bad index: %v", err)
	}
	if got, err := millrace.Values[int32](bad[1]); err != nil || got[1] != 10 {
		t.Errorf("what does not depend on it: %v, %v", got, err)
	}
	if err := s.Sync(context.Background()); err != nil && !errors.Is(err, millrace.ErrIndex) {
		t.Errorf("the stream: %v", err)
	}
	if _, err := millrace.Values[float32](sum); !errors.Is(err, millrace.ErrIndex) {
		t.Errorf("what was set: %v", err)
	}
	sum.Set(millrace.ZerosOn(s, millrace.Float32, 2))
	for range 6 {
		start(2, 2)
	}
	if err := wantAll(sum, 2, 18); err != nil {
		t.Error(err)
	}
	if _, err := rec.RunWith(nil, millrace.RunOptions{On: new(millrace.Stream), NoWait: true}); err == nil {
		t.Error("a stream that no device made")
	}
	gone := millrace.ZerosOn(s, millrace.Int32, 2)
	gone.Release()
	if _, err := rec.RunWith(nil, millrace.RunOptions{On: s, NoWait: true}, gone); !errors.Is(err, millrace.ErrReleased) {
		t.Errorf("a released argument: %v", err)
	}
}
