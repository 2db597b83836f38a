package apitest

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestRecordingUsesOtherStreams: results that a recording computes on another stream, from an
// operand there, depend on the arguments, too; the recording's results are on the stream that it
// ran on.
func TestRecordingUsesOtherStreams(t *testing.T) {
	dev := open(t, millrace.Options{})
	other := dev.NewStream()
	c := millrace.FullOn(other, millrace.Float32, 10, 3)
	for name, f := range map[string]func(x *millrace.Tensor) *millrace.Tensor{ // x+10 on the other stream
		"read back": func(x *millrace.Tensor) *millrace.Tensor { return x.Mul(c.Add(x)) },
		"a product": func(x *millrace.Tensor) *millrace.Tensor { return x.Mul(x.AddScalar(10).To(other).AddScalar(0)) },
		"returned":  func(x *millrace.Tensor) *millrace.Tensor { return c.Add(x).Mul(x) },
	} {
		for _, s := range []*millrace.Stream{dev.NewStream(), dev.DefaultStream()} {
			r := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
				return []*millrace.Tensor{f(in[0])}, nil
			})
			for i := range 4 {
				out, err := r.Run(nil, millrace.FullOn(s, millrace.Float32, float64(i), 3))
				if err != nil {
					t.Fatal(err)
				}
				if err := wantAll(out[0], 3, float32(i*(10+i))); err != nil {
					t.Errorf("%s, run %d: %v", name, i, err)
				}
				if s != dev.DefaultStream() {
					y := millrace.FullOn(s, millrace.Float32, 1, 3).Add(out[0])
					if *y.Stream() != *out[0].Stream() {
						t.Errorf("%s, run %d: the result is on another stream", name, i)
					}
				}
			}
			r.Release()
		}
	}
}

// TestDroppedStream: a stream that is dropped with queued ops releases their operands, also if a
// scope released these.
func TestDroppedStream(t *testing.T) {
	dev := open(t, millrace.Options{Tune: millrace.TuneOff})
	w := millrace.FromSliceOn(dev, make([]float32, 8), 8)
	request := func() {
		s := dev.NewStream()
		if err := s.Scope(func(sc *millrace.Scope) error {
			x := millrace.FromSliceOn(sc, make([]float32, 1000), 1000)
			y := x.Exp().AddScalar(1)
			if err := y.Eval(); err != nil {
				return err
			}
			y.Mul(x).Exp()             // queued, never read
			w.Add(y.Sum()).To(dev)     // moved to another stream
			y.Add(w.Sum()).Sum().Neg() // and from there
			z := millrace.FromSliceOn(sc, make([]float32, 1000), 1000)
			millrace.FullOn(dev.NewStream(), millrace.Float32, 1, 1000).Mul(z) // queued there only
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	for range 10 {
		request()
	}
	if err := dev.DefaultStream().Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	st := dev.Stats()
	for i := 0; i < 50 && (st.LiveBytes != 32 || st.PinnedBytes != 0); i++ {
		goruntime.GC()
		time.Sleep(time.Millisecond)
		st = dev.Stats() // Stats notices dead tensors
	}
	if st.LiveBytes != 32 || st.PinnedBytes != 0 {
		t.Errorf("%d bytes live, %d pinned", st.LiveBytes, st.PinnedBytes)
	}
	goruntime.KeepAlive(w)
}

// TestClosedStreamTakesNothing: a closed stream takes no tensor of another one and runs no
// recording.
func TestClosedStreamTakesNothing(t *testing.T) {
	dev := open(t, millrace.Options{})
	s := dev.NewStream()
	x := millrace.FullOn(dev, millrace.Float32, 1, 3)
	r := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].Neg()}, nil
	})
	for range 2 {
		if _, err := r.RunWith(nil, millrace.RunOptions{On: s}, x); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := x.To(s).Err(); !errors.Is(err, millrace.ErrClosed) {
		t.Errorf("To: %v", err)
	}
	if _, err := r.RunWith(nil, millrace.RunOptions{On: s, Give: []bool{true}}, x); !errors.Is(err, millrace.ErrClosed) {
		t.Errorf("Run: %v", err)
	}
	if err := wantAll(x, 3, 1); err != nil { // x was not given away
		t.Error(err)
	}
}

// TestScopeOwnsFailed: a handle that carried an error stays in its scope when Set gives it a value.
func TestScopeOwnsFailed(t *testing.T) {
	dev := open(t, millrace.Options{})
	var x *millrace.Tensor
	if err := dev.Scope(func(sc *millrace.Scope) error {
		x = millrace.FullOn(sc, millrace.Float32, 1, 3).Reshape(2, 2)
		if x.Err() == nil {
			return errors.New("an impossible shape")
		}
		u := millrace.FullOn(dev, millrace.Float32, 2, 3)
		x.Set(u)
		u.Release() // both have the value
		return wantAll(x, 3, 2)
	}); err != nil {
		t.Fatal(err)
	}
	if err := x.Err(); !errors.Is(err, millrace.ErrReleased) {
		t.Errorf("behind the scope: %v", err)
	}
	if live := dev.Stats().LiveBytes; live != 0 {
		t.Errorf("%d bytes live", live)
	}
}

// TestTakenOfFoldedViewOneByOne: Take of a view that no strides describe also works op by op.
func TestTakenOfFoldedViewOneByOne(t *testing.T) {
	dev := open(t, millrace.Options{Check: true})
	x := millrace.FromSliceOn(dev, []float32{1, 2, 3, 4}).Expand(2, 4).Reshape(8, 1)
	Holds(t, "taken", x.TakeAlong(millrace.FromSliceOn(dev, []int32{6, 1}, 2, 1), 0), 3, 2)
	if err := dev.Sync(context.Background()); err != nil { // the check finds no difference
		t.Error(err)
	}
}
