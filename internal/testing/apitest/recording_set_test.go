package apitest

import (
	"context"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestRecordingSets: a function that sets tensors from elsewhere does the same called or replayed.
// Random functions, on weights of the recording's stream and of another one, with other work of the
// program between two runs.
func TestRecordingSets(t *testing.T) {
	dev := open(t, millrace.Options{Compile: millrace.CompileOff})
	kept := 0
	seeds := []uint64{6656} // a handle was set to another one's value, which waited on a third stream
	for seed := range uint64(300) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		n := setProgram(t, dev, seed)
		kept += n.runs - n.calls
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if kept < 900 {
		t.Errorf("only %d runs did not call the function", kept)
	}
	if got := dev.Stats().Replays; got < 500 {
		t.Errorf("%d replays", got)
	}
}

type setCounts struct{ runs, calls int }

// stepOp is one line of a random function on handles: state, arguments and temporaries.
type stepOp struct{ kind, a, b, dst int }

// sets are the kinds that set their dst.
var sets = [8]bool{true, true, true, 6: true}

func setProgram(t *testing.T, dev *millrace.Device, seed uint64) (n setCounts) {
	rng := rand.New(rand.NewPCG(seed, 7))
	s := dev.NewStream()
	const states = 3
	var text []stepOp
	for range 1 + rng.IntN(8) {
		text = append(text, stepOp{rng.IntN(8), rng.IntN(11), rng.IntN(11), rng.IntN(states)})
	}
	outs := rng.IntN(3)
	// Two of everything: the first is computed by calls, the second by a recording.
	var w [2][states]*tensor
	for i := range states {
		at := []millrace.Place{dev, s, dev.NewStream()}[rng.IntN(3)]
		for k := range w {
			w[k][i] = millrace.FullOn(at, millrace.Float32, float64(i+1), 4)
			if i == 1 && seed%2 == 0 {
				w[k][i] = w[k][i].AddScalar(1) // pending
			}
		}
	}
	constant := millrace.FullOn(dev, millrace.Float32, 3, 4)
	// Other handles of the states keep their values, whatever the states are set to.
	var others [2][]*tensor
	for range rng.IntN(3) {
		i, kind := rng.IntN(states), rng.IntN(3)
		for k := range others {
			v := w[k][i]
			if _, err := millrace.Values[float32](v); err != nil {
				t.Fatal(err)
			}
			switch kind {
			case 0: // a view
				v = v.Flip(0)
			case 1: // a tensor that is never read
				v = v.MulScalar(2)
				if _, err := millrace.Values[float32](v.AddScalar(1)); err != nil {
					t.Fatal(err)
				}
			case 2: // the same on another stream
				v = v.To(dev.NewStream())
			}
			others[k] = append(others[k], v)
		}
	}
	f := func(k int) func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
			if k == 1 {
				n.calls++
			}
			x := append(append([]*tensor{in[0], in[1], constant}, w[k][:]...), others[k]...)
			pick := func(i int) *tensor { return x[i%len(x)] }
			for _, op := range text {
				a, b, dst := pick(op.a), pick(op.b), w[k][op.dst]
				switch op.kind {
				case 0:
					dst.Set(dst.Sub(a.MulScalar(0.5)))
				case 1:
					dst.Set(a.Maximum(b))
				case 2:
					dst.Set(a)
				case 3:
					x = append(x, a.Mul(b).Sum().Expand(4).MulScalar(0.01))
				case 4:
					x = append(x, a.Sub(b))
				case 5:
					own := a.To(sc)
					own.Set(own.AddScalar(1))
					x = append(x, own)
				case 7:
					x = append(x, a.Flip(0)) // alive when the tensor of the view is set
				case 6:
					dst.Set(millrace.FullOn(sc, millrace.Float32, 2, 4))
				}
			}
			return x[len(x)-outs:], nil
		}
	}
	rec := millrace.NewRecording(f(1))
	defer rec.Release()
	for run := range 8 {
		var args [2][]*tensor
		for k := range args {
			args[k] = []*tensor{
				millrace.FullOn(s, millrace.Float32, float64(run), 4), millrace.FullOn(s, millrace.Float32, float64(7*run), 4),
			}
		}
		var direct []*tensor
		if err := s.Scope(func(sc *millrace.Scope) error {
			out, err := f(0)(sc, []*tensor{args[0][0].To(sc), args[0][1].To(sc)})
			for _, y := range out {
				direct = append(direct, y.To(s))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		recorded, err := rec.RunWith(nil, millrace.RunOptions{On: s, Give: []bool{run%2 == 0, false}}, args[1]...)
		if err != nil {
			t.Fatal(err)
		}
		n.runs++
		for i := range states {
			direct, recorded = append(direct, w[0][i]), append(recorded, w[1][i])
		}
		for i := range direct {
			want, err := millrace.Values[float32](direct[i])
			if err != nil {
				t.Fatal(err)
			}
			got, err := millrace.Values[float32](recorded[i])
			if err == nil {
				err = sameBits(got, want)
			}
			if err != nil {
				t.Fatalf("seed %d, run %d, %d of %d with %d states: %v, %v", seed, run, i, len(direct), states, err, text)
			}
		}
		i := rng.IntN(states)
		if !slices.ContainsFunc(text, func(op stepOp) bool { return sets[op.kind] && op.dst == i }) {
			continue // tensors that the function only reads keep their values of the first run
		}
		switch rng.IntN(4) {
		case 0: // another value from outside
			for k := range w {
				w[k][i].Set(millrace.FullOn(s, millrace.Float32, 5, 4))
			}
		case 1: // another shape, which broadcasts
			if run == 2 {
				for k := range w {
					w[k][i].Set(millrace.FullOn(s, millrace.Float32, 5, 1).Expand(4).AddScalar(0))
				}
			}
		}
	}
	return n
}

// TestRecordingSetsWhatOthersHave: other handles of a weight that a recorded function sets keep
// their value. If the function reads that value by another handle, and the weight by its own, the
// recording distinguishes them. If both are the same memory it cannot; the function is then called
// once more, and afterwards they are distinct.
func TestRecordingSetsWhatOthersHave(t *testing.T) {
	dev := open(t, millrace.Options{Compile: millrace.CompileOff})
	for _, c := range []struct {
		name  string
		other func(w *tensor) *tensor
		reads bool // the function reads the other handle
		calls int
	}{
		{"a view", func(w *tensor) *tensor { return w.Flip(0) }, false, 1},
		{"a view that is read", func(w *tensor) *tensor { return w.Flip(0) }, true, 1},
		{"the same on another stream", func(w *tensor) *tensor { return w.To(dev.NewStream()) }, false, 1},
		{"the same, which is read", func(w *tensor) *tensor { return w.To(dev.NewStream()) }, true, 2},
		{"what is made of it", func(w *tensor) *tensor {
			y := w.Mul(w)
			if _, err := millrace.Values[float32](y.Neg()); err != nil { // this does not write y
				t.Fatal(err)
			}
			return y
		}, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := dev.NewStream()
			w := millrace.OnesOn(s, millrace.Float32, 4)
			if err := wantAll(w, 4, 1); err != nil {
				t.Fatal(err)
			}
			other, calls := c.other(w), 0
			rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
				calls++
				y := in[0].Add(w)
				if c.reads {
					y = y.Add(other)
				}
				w.Set(w.Flip(0).Add(in[0])) // its own view is alive, too
				return []*tensor{y}, nil
			})
			defer rec.Release()
			one := millrace.OnesOn(s, millrace.Float32, 4)
			for run := range 6 {
				out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, one)
				if err != nil {
					t.Fatal(err)
				}
				want := float32(run + 2)
				if c.reads {
					want++
				}
				if err := wantAll(out[0], 4, want); err != nil {
					t.Errorf("run %d: %v", run, err)
				}
				if err := wantAll(w, 4, float32(run+2)); err != nil {
					t.Errorf("run %d: the weight: %v", run, err)
				}
			}
			if err := wantAll(other, 4, 1); err != nil {
				t.Error("what others have: ", err)
			}
			if calls != c.calls {
				t.Errorf("%d calls, want %d", calls, c.calls)
			}
		})
	}
}

// TestRecordingSetsInPlace: a training step in a recording takes no more memory with every run, and
// works in place if the weights have no other handles.
func TestRecordingSetsInPlace(t *testing.T) {
	dev := open(t, millrace.Options{Compile: millrace.CompileOff})
	s := dev.NewStream()
	w := millrace.ZerosOn(s, millrace.Float32, 1000)
	calls := 0
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		calls++
		w.Set(w.Add(in[0]))
		return nil, nil
	})
	one := millrace.OnesOn(s, millrace.Float32, 1000)
	var live int64
	for run := range 20 {
		if _, err := rec.RunWith(nil, millrace.RunOptions{On: s}, one); err != nil {
			t.Fatal(err)
		}
		if run == 3 {
			live = dev.Stats().LiveBytes
		}
	}
	if got := dev.Stats(); got.LiveBytes > live || got.InPlace < 10 {
		t.Errorf("%d bytes after 3 runs, %d after 20, %d in place", live, got.LiveBytes, got.InPlace)
	}
	if err := wantAll(w, 1000, 20); err != nil || calls != 1 {
		t.Error(calls, err)
	}
}

// TestRecordingResultsApart: each result of one run keeps only its own memory.
func TestRecordingResultsApart(t *testing.T) {
	dev := open(t, millrace.Options{Compile: millrace.CompileOff})
	s := dev.NewStream()
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return []*tensor{in[0].AddScalar(1), in[0].Sum()}, nil
	})
	x := millrace.OnesOn(s, millrace.Float32, 1<<18)
	var kept []*tensor
	for range 50 {
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, x)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, out[1])
	}
	var live int64
	for range 10 {
		goruntime.GC()
		if err := s.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		if live = dev.Stats().LiveBytes; live < 4<<20 {
			break
		}
	}
	if live >= 4<<20 {
		t.Errorf("%d small results hold %d bytes", len(kept), live)
	}
	if err := wantAll(kept[49], 1, 1<<18); err != nil {
		t.Error(err)
	}
}

// TestRecordingBesideSets: what another goroutine sets on the stream of a recording, while its
// function is called, is not set again by later runs, and stays as it is after a trial.
func TestRecordingBesideSets(t *testing.T) {
	for _, axes := range [][]millrace.Axes{nil, {{"n"}}} {
		dev := openSpec(t, "cpu:compile=off")
		w := millrace.ZerosOn(dev, millrace.Float32, 2)
		set := func(v float64) { w.Set(millrace.FullOn(dev, millrace.Float32, v-1, 2).AddScalar(1)) }
		calls, beside := 0, 3 // the first calls come beside sets
		rec := millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
			if calls++; calls <= beside {
				done := make(chan struct{})
				go func() {
					defer close(done)
					set(float64(calls))
				}()
				<-done
			}
			return []*tensor{in[0].MulScalar(2)}, nil
		}, axes...)
		for run := range 12 {
			set(9)
			want, before := float32(9), calls
			out, err := rec.Run(nil, millrace.OnesOn(dev, millrace.Float32, 3+run%2*len(axes)))
			if err != nil || floatsOf(t, out[0])[2] != 2 {
				t.Fatalf("run %d: %v", run, err)
			}
			if before < min(calls, beside) {
				want = float32(min(calls, beside))
			}
			if run > 8 && calls != before {
				t.Errorf("run %d calls the function", run)
			}
			if got := floatsOf(t, w)[1]; got != want {
				t.Errorf("run %d, calls %d to %d: the tensor is %v, want %v", run, before+1, calls, got, want)
			}
		}
		if calls <= beside {
			t.Errorf("%d calls", calls)
		}
	}
}

func floatsOf(t *testing.T, x *tensor) []float32 {
	t.Helper()
	v, err := millrace.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
