package apitest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestRecordingInside: the function of a Recording may call anything on it, or on another one,
// while it runs, is recorded or tried at other sizes. It does not wait for itself, and its results
// are right.
func TestRecordingInside(t *testing.T) {
	type at struct {
		dev    *millrace.Device
		s      *millrace.Stream
		rec    *millrace.Recording
		other  *millrace.Recording
		bound  *millrace.BoundRecording
		nested bool
	}
	calls := map[string]func(x *at, in []*tensor) error{
		"release":       func(x *at, in []*tensor) error { x.rec.Release(); return nil },
		"release other": func(x *at, in []*tensor) error { x.other.Release(); return nil },
		"run": func(x *at, in []*tensor) error {
			if x.nested {
				return nil
			}
			x.nested = true
			defer func() { x.nested = false }()
			_, err := x.rec.Run(nil, in...)
			return err
		},
		"bind": func(x *at, in []*tensor) error {
			if x.nested {
				return nil
			}
			x.nested = true
			defer func() { x.nested = false }()
			if b, err := x.rec.Bind(in...); err == nil {
				return b.Close()
			} else if !errors.Is(err, millrace.ErrUnsupported) { // a run within another one is not recorded
				return err
			}
			return nil
		},
		"run other":    func(x *at, in []*tensor) error { _, err := x.other.Run(nil, in...); return err },
		"bound run":    func(x *at, in []*tensor) error { return x.bound.Run() },
		"set argument": func(x *at, in []*tensor) error { return millrace.SetInput(x.bound, 0, float32(1), 2, 3, 4) },
		"sync":         func(x *at, in []*tensor) error { return x.dev.Sync(nil) },
		"wait":         func(x *at, in []*tensor) error { x.dev.Wait(); return nil },
	}
	for name, call := range calls {
		for _, axes := range [][]millrace.Axes{nil, {{"n"}}} {
			where := "fixed"
			if axes != nil {
				where = "axes"
			}
			t.Run(name+"/"+where, func(t *testing.T) {
				dev := openSpec(t, "cpu:compile=off")
				x := &at{dev: dev, s: dev.DefaultStream()}
				triple := func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) { return []*tensor{in[0].MulScalar(3)}, nil }
				x.other = millrace.NewRecording(triple, axes...)
				var err error
				if x.bound, err = millrace.NewRecording(triple).Bind(millrace.OnesOn(dev, millrace.Float32, 4)); err != nil {
					t.Fatal(err)
				}
				x.rec = millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
					if err := call(x, in); err != nil {
						return nil, err
					}
					return []*tensor{in[0].AddScalar(1)}, nil
				}, axes...)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for n := range 8 {
						out, err := x.rec.Run(nil, millrace.OnesOn(dev, millrace.Float32, n%5+3))
						if err != nil {
							t.Error(err)
							return
						}
						if v, err := millrace.Values[float32](out[0]); err != nil || len(v) != n%5+3 || v[n%5+2] != 2 {
							t.Errorf("%v, %v", v, err)
						}
					}
				}()
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					t.Fatal("it waits for ever")
				}
			})
		}
	}
}

// TestRecordingOfItself: a function may run its own Recording on smaller arguments; endless
// recursion is an error.
func TestRecordingOfItself(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	var halves *millrace.Recording
	halves = millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		if in[0].Len() == 1 {
			return in, nil
		}
		n := in[0].Len() / 2
		out, err := halves.Run(nil, in[0].Slice(millrace.R(0, n)).Add(in[0].Slice(millrace.R(n, 2*n))))
		return out, err
	})
	for range 3 {
		out, err := halves.Run(nil, millrace.OnesOn(dev, millrace.Float32, 64))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := millrace.Item[float32](out[0]); v != 64 || err != nil {
			t.Errorf("%v, want 64: %v", v, err)
		}
	}
	var endless *millrace.Recording
	endless = millrace.NewRecording(func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) { return endless.Run(nil, in...) })
	in := []*tensor{millrace.OnesOn(dev, millrace.Float32, 4)}
	for range 2 {
		if _, err := endless.Run(nil, in...); err == nil || !strings.Contains(err.Error(), "own Recording") || !strings.Contains(err.Error(), "recording_inside_test.go:") {
			t.Errorf("without end: %v", err)
		}
	}
	if _, err := endless.Bind(in...); err == nil || !strings.Contains(err.Error(), "own Recording") {
		t.Errorf("bound: %v", err)
	}
	if v, err := millrace.Item[float32](in[0].Sum()); v != 4 || err != nil {
		t.Errorf("the argument is %v: %v", v, err)
	}
}
