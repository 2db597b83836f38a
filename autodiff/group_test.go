package autodiff_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// TestGroupResults: a function of Custom or Checkpoint may return an argument, an older tensor, or
// one tensor twice. None of the program's handles is released because of it.
func TestGroupResults(t *testing.T) {
	want := func(what string, x *T, want string) {
		t.Helper()
		if got := fmt.Sprint(values(t, x)); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	grad := func(what string, y, x *T, d string) {
		t.Helper()
		g, err := autodiff.Grad(y.Square().Sum(), x)
		if err != nil {
			t.Fatal(what, err)
		}
		if want(what, g[0], d); autodiff.Watched(g[0]) {
			t.Errorf("%s: the derivative is followed", what)
		}
	}
	x, plain := autodiff.Watch(millrace.FromSlice([]float64{1, 2})), millrace.FromSlice([]float64{3, 4})
	same := func(in []*T) []*T { return in }
	last := func(in, out, d []*T) []*T { return []*T{d[0].Neg()} }

	grad("a checkpoint of nothing", autodiff.Checkpoint(same, x)[0], x, "[2 4]")
	want("its operand", x, "[1 2]")
	h := x.MulScalar(3)
	grad("an older tensor", autodiff.Checkpoint(func(in []*T) []*T { return []*T{h} }, x)[0], x, "[18 36]")
	want("that tensor", h, "[3 6]")
	r := autodiff.Checkpoint(func(in []*T) []*T { y := in[0].Square(); return []*T{y, y} }, x)
	grad("one result twice", r[0].Add(r[1]), x, "[16 128]")

	grad("turned round", autodiff.Custom(same, last, x)[0], x, "[-2 -4]")
	want("its operand", x, "[1 2]")
	want("not watched", autodiff.Custom(same, last, plain)[0], "[3 4]")
	want("its operand", plain, "[3 4]")
	grad("the operand as derivative", autodiff.Custom(same, func(in, out, d []*T) []*T { return []*T{in[0]} }, x.Neg())[0], x, "[1 2]")
	grad("of the program's own", autodiff.Custom(same, func(in, out, d []*T) []*T { return []*T{x.MulScalar(5)} }, x)[0], x, "[5 10]")
}

// TestGroupRules: functions within functions have first and second derivatives.
func TestGroupRules(t *testing.T) {
	sine := func(in []*T) []*T { return []*T{in[0].Sin()} }
	cosine := func(in, out, d []*T) []*T { return []*T{d[0].Mul(in[0].Cos())} }
	a := optable.Operand{Shape: []int{3, 4}, Lo: -1, Hi: 1}
	for name, f := range map[string]func(in []*T) *T{
		"checkpoint": func(in []*T) *T { // one result is not used, and one tensor is used that is no operand
			w := in[1]
			return autodiff.Checkpoint(func(in []*T) []*T { return []*T{in[0].Mul(w).Sin(), in[0].Exp()} }, in[0])[0].Square()
		},
		"checkpoint within": func(in []*T) *T {
			w := in[1]
			r := autodiff.Checkpoint(func(in []*T) []*T {
				h := autodiff.Checkpoint(func(in []*T) []*T { return []*T{in[0].Mul(w).Sin()} }, in[0])[0]
				return []*T{h.Mul(in[0]), h.Exp()}
			}, in[0])
			return r[0].Mul(r[1]).Add(r[1])
		},
		"custom": func(in []*T) *T {
			r := autodiff.Custom(func(in []*T) []*T { return []*T{in[0].Sin().Mul(in[1]), in[1].Square()} }, func(in, out, d []*T) []*T {
				return []*T{d[0].Mul(in[0].Cos()).Mul(in[1]), d[0].Mul(in[0].Sin()).Add(d[1].Mul(in[1]).MulScalar(2))}
			}, in...)
			return r[0].Mul(r[1]).Add(r[0])
		},
		"custom of four": func(in []*T) *T { // each operand occurs twice
			all := func(in []*T) *T { return in[0].Add(in[1]).Add(in[2]).Add(in[3]) }
			return autodiff.Custom(func(in []*T) []*T { return []*T{all(in).Square()} }, func(in, out, d []*T) []*T {
				g := d[0].Mul(all(in)).MulScalar(2)
				return []*T{g, g, g, g}
			}, in[0], in[1], in[0], in[1])[0]
		},
		"custom within": func(in []*T) *T {
			return autodiff.Checkpoint(func(in []*T) []*T { return autodiff.Custom(sine, cosine, in[0]) }, in...)[0].Mul(in[1])
		},
		"derivative within": func(in []*T) *T {
			x := in[0]
			if !autodiff.Watched(x) {
				x = autodiff.Watch(x)
			}
			g, err := autodiff.Options{Follow: true}.Grad(x.Sin().Mul(in[1]).Sum(), x)
			if err != nil {
				t.Fatal(err)
			}
			return g[0].Square()
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, f, a, a) })
	}
}

// TestTransformsOfOtherGraphs: functions may use tensors of another graph, which stays as it is,
// and may return tensors that they did not make.
func TestTransformsOfOtherGraphs(t *testing.T) {
	w := autodiff.Watch(millrace.FromSlice([]float64{1, 2}))
	h, c := w.Square(), millrace.Scalar(2.0)
	for _, k := range []struct {
		name string
		f    func() ([]*T, error)
		want string
	}{
		{"jvp", func() ([]*T, error) {
			_, d, err := autodiff.JVP(func(in []*T) []*T { return []*T{in[0].Mul(h)} }, []*T{w}, []*T{w})
			return d, err
		}, "[1 8]"},
		{"second", func() ([]*T, error) {
			return autodiff.HessianVectorProduct(func(in []*T) *T { return in[0].Square().Mul(h).Sum() }, []*T{w}, []*T{w})
		}, "[2 16]"},
		{"second of a constant", func() ([]*T, error) {
			return autodiff.HessianVectorProduct(func(in []*T) *T { return c }, []*T{w}, []*T{w})
		}, "[0 0]"},
		{"value of a constant", func() ([]*T, error) {
			_, g, err := autodiff.ValueAndGrad(func(in []*T) *T { return c }, w)
			return g, err
		}, "[0 0]"},
		{"value of the operand", func() ([]*T, error) {
			_, g, err := autodiff.ValueAndGrad(func(in []*T) *T { return in[0] }, c)
			return g, err
		}, "[1]"},
		{"results that are not made", func() ([]*T, error) {
			y, d, err := autodiff.JVP(func(in []*T) []*T { return []*T{c, in[0]} }, []*T{c}, []*T{c})
			return []*T{y[0].Add(y[1]).Add(d[0]).Add(d[1])}, err
		}, "[6]"},
		{"the other graph", func() ([]*T, error) { return autodiff.Grad(h.Sum(), w) }, "[2 4]"},
		{"the constant", func() ([]*T, error) { return []*T{c}, nil }, "[2]"},
	} {
		ts, err := k.f()
		if err != nil {
			t.Fatal(k.name, err)
		}
		if got := fmt.Sprint(values(t, ts[0])); got != k.want || autodiff.Watched(ts[0]) {
			t.Errorf("%s: %s, want %s, not followed", k.name, got, k.want)
		}
	}
}

// TestGroupBadInput: bad input of functions gives an error, not a panic.
func TestGroupBadInput(t *testing.T) {
	x := autodiff.Watch(millrace.FromSlice([]float64{1, 2}))
	exp := func(in []*T) []*T { return []*T{in[0].Exp()} }
	ours := func(in, out, d []*T) []*T { return []*T{d[0]} }
	sum := func(in []*T) *T { return in[0].Exp().Sum() }
	gap := func(in []*T) []*T { return []*T{nil, in[0].Exp()} }
	second := func(ts []*T) error {
		if err := ts[0].Err(); err == nil {
			return errors.New("the first result is nil without an error")
		}
		_, err := autodiff.Grad(ts[1].Sum(), x)
		return err
	}
	for _, c := range []struct {
		name string
		f    func() error
		fine bool
	}{
		{"custom of nil", func() error { return autodiff.Custom(exp, ours, nil)[0].Err() }, false},
		{"custom without forward", func() error { return autodiff.Custom(nil, ours, x)[0].Err() }, false},
		{"custom without backward", func() error { return autodiff.Custom(exp, nil, x)[0].Err() }, false},
		{"custom with an operand left out", func() error {
			_, err := autodiff.Grad(autodiff.Custom(exp, func(in, out, d []*T) []*T { return []*T{d[0], nil} }, x, nil)[0].Sum(), x)
			return err
		}, true},
		{"custom with a result left out", func() error {
			return second(autodiff.Custom(gap, func(in, out, d []*T) []*T { return []*T{d[1]} }, x))
		}, true},
		{"checkpoint of nil", func() error { return autodiff.Checkpoint(exp, nil)[0].Err() }, false},
		{"checkpoint without a function", func() error { return autodiff.Checkpoint(nil, x)[0].Err() }, false},
		{"checkpoint with an operand left out", func() error {
			_, err := autodiff.Grad(autodiff.Checkpoint(exp, x, nil)[0].Sum(), x)
			return err
		}, true},
		{"checkpoint with a result left out", func() error { return second(autodiff.Checkpoint(gap, x)) }, true},
		{"values of nil", func() error { _, _, err := autodiff.ValueAndGrad(sum, nil); return err }, false},
		{"a loss of nil", func() error {
			_, _, err := autodiff.ValueAndGrad(func([]*T) *T { return nil }, x)
			return err
		}, false},
		{"jvp along nil", func() error { _, _, err := autodiff.JVP(exp, []*T{x}, []*T{nil}); return err }, false},
		{"jvp along another shape", func() error {
			_, _, err := autodiff.JVP(exp, []*T{x}, []*T{millrace.Scalar(1.0)})
			return err
		}, false},
		{"second derivatives along nil", func() error {
			_, err := autodiff.HessianVectorProduct(sum, []*T{x}, []*T{nil})
			return err
		}, false},
		{"vjp with nil", func() error { _, err := autodiff.VJP([]*T{x.Exp()}, []*T{nil}, []*T{x}); return err }, false},
		{"a tensor that was never made", func() error { return autodiff.Watch(new(T)).Err() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.f(); (err == nil) != c.fine {
				t.Error(err)
			}
		})
	}
	if _, err := autodiff.Grad(x.Sum(), x); err != nil {
		t.Error("after all that: ", err)
	}
}

// TestGroupsGiveBack: Checkpoint, JVP and similar functions release their intermediate tensors at
// once.
func TestGroupsGiveBack(t *testing.T) {
	d := open(t, "cpu")
	s := d.NewStream()
	w := autodiff.Watch(millrace.UniformOn(s, millrace.Float32, 1, 1000))
	if err := w.Eval(); err != nil {
		t.Fatal(err)
	}
	f := func(in []*T) []*T { return []*T{in[0].Exp().Sin()} }
	sum := func(in []*T) *T { return in[0].Exp().Sin().Sum() }
	for name, run := range map[string]func() ([]*T, error){
		"checkpoint": func() ([]*T, error) {
			r := autodiff.Checkpoint(f, w)
			l := r[0].Sum()
			g, err := autodiff.Grad(l, w)
			return append(r, l, g[0]), err
		},
		"jvp": func() ([]*T, error) {
			y, v, err := autodiff.JVP(f, []*T{w}, []*T{w})
			return append(y, v...), err
		},
		"second": func() ([]*T, error) { return autodiff.HessianVectorProduct(sum, []*T{w}, []*T{w}) },
		"value": func() ([]*T, error) {
			v, g, err := autodiff.ValueAndGrad(sum, w)
			return append(g, v), err
		},
	} {
		once := func() {
			ts, err := run()
			if err != nil {
				t.Fatal(name, err)
			}
			for _, x := range ts {
				if err := x.Eval(); err != nil {
					t.Fatal(name, err)
				}
				x.Release()
			}
			s.Sync(nil)
		}
		once()
		before := d.Stats().LiveBytes
		for range 3 {
			once()
		}
		if now := d.Stats().LiveBytes; now != before {
			t.Errorf("%s: %d live bytes, %d before", name, now, before)
		}
	}
}

// TestRulesPassErrors: a derivative that carries an error carries it on through every rule.
func TestRulesPassErrors(t *testing.T) {
	bad := millrace.FromSlice([]float64{1, 2}).Add(millrace.FromSlice([]float64{1, 2, 3}))
	for _, c := range optable.Grads() {
		t.Run(c.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			vals := make([][]float64, len(c.Ops))
			for i, o := range c.Ops {
				vals[i] = o.Values(r)
			}
			_, g, err := autodiff.ValueAndGrad(func(in []*T) *T {
				y := autodiff.Custom(func(in []*T) []*T { return []*T{in[0].Neg()} }, func(_, _, _ []*T) []*T { return []*T{bad} }, c.F(in))[0]
				return optable.Weigh(y)
			}, tensors(c.Ops, vals)...)
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range g {
				if !errors.Is(d.Err(), millrace.ErrShape) {
					t.Errorf("operand %d: %v", i, d.Err())
				}
			}
		})
	}
}

// TestGroupPanics: if a function of the program panics, the graph stays as it was. The next call
// that takes derivatives releases what the graph keeps.
func TestGroupPanics(t *testing.T) {
	left := func(panics bool) int64 {
		d := open(t, "cpu:cache=off,compile=off")
		x := millrace.FromSliceOn(d, []float64{1, 2})
		w := autodiff.Watch(x)
		e := w.MulScalar(1)
		var made []*T // tensors that the functions made, which the program owns
		y := autodiff.Custom(func(in []*T) []*T {
			made = append(made, in[0].Exp())
			return []*T{made[0]}
		}, func(in, out, d []*T) []*T {
			if panics {
				panic("not yet")
			}
			made = append(made, d[0].Mul(out[0]))
			return []*T{made[1]}
		}, e)[0]
		if panics {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				autodiff.VJP([]*T{y}, []*T{x}, []*T{w})
			}()
			panics = false
		}
		g, err := autodiff.VJP([]*T{y}, []*T{x}, []*T{w})
		if err != nil {
			t.Fatal(err)
		}
		if got := values(t, g[0]); got[0] != math.Exp(1) || got[1] != 2*math.Exp(2) {
			t.Error(got)
		}
		for _, r := range append(made, x, w, e, y, g[0]) {
			r.Release()
		}
		return d.Stats().Runtime.AllocBytes
	}
	if calm, panicked := left(false), left(true); calm != 0 || panicked != 0 {
		t.Errorf("%d bytes are left, behind a panic %d", calm, panicked)
	}
}
