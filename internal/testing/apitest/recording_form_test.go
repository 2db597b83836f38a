package apitest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestRecordingStream: a run uses the stream that an op on its arguments would use, or a requested
// one.
func TestRecordingStream(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	def, a, b := dev.DefaultStream(), dev.NewStream(), dev.NewStream()
	sum := func(in []*tensor) *tensor {
		x := millrace.OnesOn(dev, millrace.Float32, 2)
		for _, y := range in {
			x = x.Add(y)
		}
		return x
	}
	// Only arguments are used, so nothing else determines the stream.
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return []*tensor{in[0].Add(in[len(in)-1])}, nil
	})
	on := func(s *millrace.Stream) *tensor { return millrace.OnesOn(s, millrace.Float32, 2) }
	for name, c := range map[string]struct {
		in   []*tensor
		opt  millrace.RunOptions
		want *millrace.Stream
	}{
		"default":       {[]*tensor{on(def), on(def)}, millrace.RunOptions{}, def},
		"one":           {[]*tensor{on(a)}, millrace.RunOptions{}, a},
		"second":        {[]*tensor{on(def), on(a), on(b)}, millrace.RunOptions{}, a},
		"first":         {[]*tensor{on(b), on(def), on(a)}, millrace.RunOptions{}, b},
		"asked for":     {[]*tensor{on(b), on(def)}, millrace.RunOptions{On: a}, a},
		"the device's":  {[]*tensor{on(b), on(def)}, millrace.RunOptions{On: dev}, def},
		"the default's": {[]*tensor{on(b), on(def)}, millrace.RunOptions{On: def}, def},
	} {
		for _, noWait := range []bool{false, true} {
			c.opt.NoWait = noWait
			for range 3 {
				out, err := rec.RunWith(context.Background(), c.opt, c.in...)
				if err != nil {
					t.Fatal(err)
				}
				if *out[0].Stream() != *c.want {
					t.Errorf("%s: another stream", name)
				}
				if c.opt.On == nil && *sum(c.in).Stream() != *c.want {
					t.Errorf("%s: the case is wrong: an op's result is elsewhere", name)
				}
				if v, err := millrace.Values[float32](out[0]); err != nil || v[1] != 2 {
					t.Errorf("%s: %v, %v", name, v, err)
				}
			}
		}
		bound, err := rec.BindWith(millrace.BindOptions{On: c.opt.On}, c.in...)
		if err != nil {
			t.Fatal(err)
		}
		if *bound.Results()[0].Stream() != *c.want {
			t.Errorf("%s: bound to another stream", name)
		}
		bound.Close()
	}
	none := millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		return []*tensor{millrace.OnesOn(sc, millrace.Float32, 1)}, nil
	})
	out, err := none.Run(nil)
	if err != nil {
		t.Fatal(err)
	}
	if home, err := millrace.Default(); err != nil || *out[0].Stream() != *home.DefaultStream() {
		t.Errorf("without arguments it is not the default stream: %v", err)
	}
}

// TestRecordingContext: a run does not begin when its context is done, and is not waited for
// longer; its sets still happen.
func TestRecordingContext(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	w := millrace.ZerosOn(dev, millrace.Float32, 4)
	if err := w.Eval(); err != nil {
		t.Fatal(err)
	}
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		w.Set(w.Add(in[0]))
		return []*tensor{in[0].MulScalar(2)}, nil
	})
	x := millrace.OnesOn(dev, millrace.Float32, 4)
	runs := float32(0)
	check := func() {
		t.Helper()
		if v, err := millrace.Values[float32](w); err != nil || v[0] != runs {
			t.Errorf("%v after %v runs: %v", v, runs, err)
		}
	}
	live, cancel := context.WithCancel(context.Background())
	for range 5 {
		out, err := rec.Run(live, x)
		runs++
		if err != nil {
			t.Fatal(err)
		}
		if v, err := millrace.Values[float32](out[0]); err != nil || v[3] != 2 {
			t.Errorf("%v, %v", v, err)
		}
		check()
	}
	cancel()
	for _, noWait := range []bool{false, true} {
		if out, err := rec.RunWith(live, millrace.RunOptions{NoWait: noWait}, x); !errors.Is(err, context.Canceled) || out != nil {
			t.Errorf("a context that is done: %v, %v", out, err)
		}
	}
	check()

	// A busy device: a hook holds up its lane.
	in, out := make(chan struct{}), make(chan struct{})
	held := false
	trace := &millrace.Trace{Run: func(millrace.RunEvent) {
		if held {
			held = false
			close(in)
			<-out
		}
	}}
	busy, err := millrace.OpenOptions(millrace.Options{Device: "cpu", Compile: millrace.CompileOff, Cache: "off", Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	y := millrace.OnesOn(busy, millrace.Float32, 4)
	double := millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) { return []*tensor{in[0].MulScalar(2)}, nil })
	for range 3 {
		if _, err := double.Run(nil, y); err != nil {
			t.Fatal(err)
		}
	}
	held = true
	short, end := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer end()
	if _, err := double.Run(short, y); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it was waited for, or something else: %v", err)
	}
	<-in
	close(out)
	if got, err := double.Run(context.Background(), y); err != nil {
		t.Error(err)
	} else if v, err := millrace.Values[float32](got[0]); err != nil || v[0] != 2 {
		t.Errorf("after one that nobody waited for: %v, %v", v, err)
	}
}

// TestRecordingLines: a run that is impossible is an error with the caller's line.
func TestRecordingLines(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	x := millrace.OnesOn(dev, millrace.Float32, 4)
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) { return in, nil })
	for name, call := range map[string]func() error{
		"nil":    func() error { _, err := (*millrace.Recording)(nil).Run(nil, x); return err },
		"none":   func() error { _, err := new(millrace.Recording).Run(nil, x); return err },
		"stream": func() error { _, err := rec.RunWith(nil, millrace.RunOptions{On: new(millrace.Stream)}, x); return err },
		"marks":  func() error { _, err := rec.RunWith(nil, millrace.RunOptions{Give: []bool{true, true}}, x); return err },
		"scope": func() error {
			return dev.DefaultStream().Scope(func(sc *millrace.Scope) error {
				_, err := rec.RunWith(nil, millrace.RunOptions{On: sc}, x)
				return err
			})
		},
		"nil in":    func() error { _, err := rec.Run(nil, nil); return err },
		"bind nil":  func() error { _, err := (*millrace.Recording)(nil).Bind(x); return err },
		"bind on":   func() error { _, err := rec.BindWith(millrace.BindOptions{On: new(millrace.Stream)}, x); return err },
		"bind none": func() error { _, err := rec.Bind(nil); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "recording_form_test.go:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, err := millrace.Values[float32](x); err != nil || len(v) != 4 {
		t.Errorf("an argument of runs that were errors: %v", err)
	}
}
