package autodiff_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// runner runs a Recording in one of several ways.
type runner func(t *testing.T, s *millrace.Stream, r *millrace.Recording, in []*T) (run func() []*T)

var runners = map[string]runner{
	"run": func(t *testing.T, s *millrace.Stream, r *millrace.Recording, in []*T) func() []*T {
		return func() []*T {
			out, err := r.RunWith(nil, millrace.RunOptions{On: s}, in...)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	},
	"start": func(t *testing.T, s *millrace.Stream, r *millrace.Recording, in []*T) func() []*T {
		return func() []*T {
			out, err := r.RunWith(nil, millrace.RunOptions{On: s, NoWait: true}, in...)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	},
	"bound": func(t *testing.T, s *millrace.Stream, r *millrace.Recording, in []*T) func() []*T {
		return bound(t, s, r, in, nil)
	},
	"bound to a tensor": func(t *testing.T, s *millrace.Stream, r *millrace.Recording, in []*T) func() []*T {
		x := millrace.FullOn(s, millrace.Float64, 0, 2)
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
		return bound(t, s, r, in, []*T{x})
	},
}

func bound(t *testing.T, s *millrace.Stream, r *millrace.Recording, in, out []*T) func() []*T {
	var b *millrace.BoundRecording
	return func() []*T {
		if b == nil {
			var err error
			if b, err = r.BindWith(millrace.BindOptions{On: s, Out: out}, in...); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
		}
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
		return b.Results()
	}
}

// TestRecordingOfWatched: results that a Recording computes from a watched tensor are not
// differentiated. Grad returns an error in every run, however the Recording runs. Derivatives by
// tensors that the Recording does not depend on are not affected.
func TestRecordingOfWatched(t *testing.T) {
	for how, start := range runners {
		t.Run(how, func(t *testing.T) {
			s := open(t, "cpu").NewStream()
			x := millrace.FromSliceOn(s, []float64{3, 4})
			w, v := autodiff.Watch(millrace.FromSliceOn(s, []float64{1, 2})), autodiff.Watch(millrace.FromSliceOn(s, []float64{5, 6}))
			h := millrace.FromSliceOn(s, []float64{0, 0})
			for name, f := range map[string]func(sc *millrace.Scope, in []*T) ([]*T, error){
				"uses it": func(_ *millrace.Scope, in []*T) ([]*T, error) { return []*T{in[0].Mul(w).Exp()}, nil },
				"takes derivatives": func(_ *millrace.Scope, in []*T) ([]*T, error) {
					y := in[0].Mul(w).Exp()
					_, err := autodiff.Grad(y.Sum(), w)
					return []*T{y}, err
				},
				"checkpoint": func(_ *millrace.Scope, in []*T) ([]*T, error) {
					return autodiff.Checkpoint(func(in []*T) []*T { return []*T{in[0].Mul(w).Exp()} }, in...), nil
				},
				"sets one": func(_ *millrace.Scope, in []*T) ([]*T, error) {
					h.Set(in[0].Mul(w).Exp())
					return []*T{in[0].Exp()}, nil
				},
			} {
				run := start(t, s, millrace.NewRecording(f), []*T{x})
				var first []float64
				for i := range 5 {
					y := run()[0]
					if name == "sets one" {
						y = h
					}
					_, err := autodiff.Grad(y.Square().Sum(), w)
					if !errors.Is(err, autodiff.ErrGraph) || !strings.Contains(fmt.Sprint(err), "the Recording that ran first at") {
						t.Errorf("%s, run %d: %v", name, i, err)
					}
					u := v
					if name == "takes derivatives" { // it is not known any more where its result leads
						u = autodiff.Watch(v)
					}
					g, err := autodiff.Grad(y.Mul(u).Sum(), u)
					if err != nil {
						t.Fatalf("%s, run %d: by another tensor: %v", name, i, err)
					}
					got := values(t, g[0])
					if first == nil {
						first = got
					}
					if fmt.Sprint(got) != fmt.Sprint(first) || fmt.Sprint(got) != fmt.Sprint(values(t, y)) {
						t.Errorf("%s, run %d: %v, the first time %v", name, i, got, first)
					}
				}
			}
		})
	}
}

// TestRecordingHandsOn: a watched tensor that a Recording returns stays watched.
func TestRecordingHandsOn(t *testing.T) {
	s := open(t, "cpu").NewStream()
	w := autodiff.Watch(millrace.FromSliceOn(s, []float64{1, 2}))
	r := millrace.NewRecording(func(*millrace.Scope, []*T) ([]*T, error) { return []*T{w}, nil })
	for i := range 4 {
		y, err := r.RunWith(nil, millrace.RunOptions{On: s})
		if err != nil {
			t.Fatal(err)
		}
		g, err := autodiff.Grad(y[0].Square().Sum(), w)
		if err != nil {
			t.Fatal(i, err)
		}
		if got := fmt.Sprint(values(t, g[0])); got != "[2 4]" {
			t.Error(i, got)
		}
	}
}

// TestRecordingsWithin: Recordings within Recordings, within Checkpoint, and for any size give the
// same error.
func TestRecordingsWithin(t *testing.T) {
	s := open(t, "cpu").NewStream()
	w := autodiff.Watch(millrace.FromSliceOn(s, []float64{1, 2}))
	f := func(_ *millrace.Scope, in []*T) ([]*T, error) { return []*T{in[0].Mul(w).Exp()}, nil }
	inner := millrace.NewRecording(f)
	outer := millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) {
		y, err := inner.RunWith(nil, millrace.RunOptions{On: sc.Stream()}, in...)
		if err != nil {
			return nil, err
		}
		return []*T{y[0].Neg()}, nil
	})
	sized := millrace.NewRecording(f, millrace.Axes{"n", ""})
	run := func(r *millrace.Recording, in ...*T) []*T {
		y, err := r.RunWith(nil, millrace.RunOptions{On: s}, in...)
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	x := millrace.FromSliceOn(s, []float64{3, 4})
	for i := range 6 {
		for name, y := range map[string]*T{
			"within a recording": run(outer, x)[0],
			"of any size":        run(sized, millrace.FullOn(s, millrace.Float64, 1, 2+i, 2))[0],
			"within checkpoint":  autodiff.Checkpoint(func(in []*T) []*T { return []*T{run(inner, in...)[0].Sin()} }, x)[0],
		} {
			if _, err := autodiff.Grad(y.Sum(), w); !errors.Is(err, autodiff.ErrGraph) || !strings.Contains(fmt.Sprint(err), "the Recording that ran first at") {
				t.Errorf("%s, run %d: %v", name, i, err)
			}
		}
	}
	if st := s.Device().Stats(); st.Resizes == 0 {
		t.Error("no size was run without calling the function")
	}
}

// TestRecordingOfWatchedGivesBack: runs release the values that they keep of watched tensors.
func TestRecordingOfWatchedGivesBack(t *testing.T) {
	d := open(t, "cpu:cache=off")
	s := d.NewStream()
	w := autodiff.Watch(millrace.UniformOn(s, millrace.Float32, 1, 1000))
	x := millrace.UniformOn(s, millrace.Float32, 2, 1000)
	r := millrace.NewRecording(func(_ *millrace.Scope, in []*T) ([]*T, error) { return []*T{in[0].Mul(w).Exp().Mul(w)}, nil })
	once := func() int64 {
		y, err := r.RunWith(nil, millrace.RunOptions{On: s}, x)
		if err != nil {
			t.Fatal(err)
		}
		y[0].Release()
		return d.Stats().LiveBytes
	}
	if err := x.Eval(); err != nil {
		t.Fatal(err)
	}
	before := once() // the graph of the function's own call is given up
	r.Release()
	if after := once(); after != before {
		t.Errorf("%d live bytes after the first run, %d after the next first one", before, after)
	}
	if most := int64(3 * 4000); before > most {
		t.Errorf("%d live bytes, want %d at most", before, most)
	}
}
