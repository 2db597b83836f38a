package autodiff_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// TestCheckpointWithin: a function within a Checkpoint's function may use the tensors that the
// outer function was given or made, in any way, and these derivatives can be differentiated again.
func TestCheckpointWithin(t *testing.T) {
	within := func(ck caller) map[string]func(in []*T) *T {
		return map[string]func(in []*T) *T{
			"an argument": func(in []*T) *T {
				return ck(func(a []*T) []*T {
					return ck(func(b []*T) []*T { return []*T{b[0].Sin().Mul(a[1])} }, a[0])
				}, in...)[0]
			},
			"a result": func(in []*T) *T {
				r := ck(func(a []*T) []*T {
					h := a[0].Exp()
					return []*T{h, ck(func(b []*T) []*T { return []*T{b[0].Sin().Mul(h)} }, a[1])[0]}
				}, in...)
				return r[0].Mul(r[1])
			},
			"a residual block": func(in []*T) *T {
				x := in[0]
				for range 3 {
					x = ck(func(a []*T) []*T {
						y := ck(func(b []*T) []*T { return []*T{b[0].Mul(a[1]).Tanh().Add(a[0])} }, a[0].Sin())[0]
						return []*T{y.Add(a[0])}
					}, x, in[1])[0]
				}
				return x
			},
			"three levels, views": func(in []*T) *T {
				r := ck(func(a []*T) []*T {
					v := a[0].Transpose(0, 1)
					return ck(func(b []*T) []*T {
						y := b[0].Mul(v).Sin()
						return append(ck(func(c []*T) []*T { return []*T{c[0].Mul(a[1].Transpose(0, 1)).Exp().Mul(b[0]), v.Neg()} }, y), y)
					}, v.MulScalar(2))
				}, in...)
				return r[0].Mul(r[1]).Add(r[2])
			},
			"a custom function": func(in []*T) *T {
				return ck(func(a []*T) []*T {
					return autodiff.Custom(func(in []*T) []*T { return []*T{in[0].Sin()} },
						func(in, _, d []*T) []*T { return []*T{d[0].Mul(in[0].Cos()).Mul(a[1])} }, a[0].Mul(a[1]))
				}, in...)[0]
			},
			"draws of a fixed seed": func(in []*T) *T {
				return ck(func(a []*T) []*T {
					keep := millrace.UniformOn(a[0].Stream(), a[0].DType(), 3, a[0].Shape()...).LtScalar(0.5)
					return ck(func(b []*T) []*T { return []*T{b[0].Sin().MaskedFill(keep, 0).Mul(a[1])} }, a[0])
				}, in...)[0]
			},
		}
	}
	plain, checked := within(direct), within(autodiff.Checkpoint)
	s := open(t, "cpu").NewStream()
	for name, f := range checked {
		for _, o := range []autodiff.Options{{}, {Keep: true}, {Follow: true}} {
			var got [2][]float64
			for k, f := range []func(in []*T) *T{plain[name], f} {
				var ins []*T
				for i := range 2 {
					ins = append(ins, autodiff.Watch(millrace.UniformOn(s, millrace.Float32, uint64(i+1), 3, 3)))
				}
				y := f(ins)
				g, err := o.Grad(y.Square().Sum(), ins...)
				if err != nil {
					t.Fatalf("%s, %+v: %v", name, o, err)
				}
				if o.Keep && !o.Follow {
					if g, err = o.Grad(y.Square().Sum(), ins...); err != nil {
						t.Fatalf("%s, again: %v", name, err)
					}
				}
				if o.Follow {
					if g, err = autodiff.Grad(g[0].Mul(g[1]).Sum(), ins...); err != nil {
						t.Fatalf("%s, twice: %v", name, err)
					}
				}
				for _, d := range append(g, y) {
					v, err := millrace.Values[float32](d)
					if err != nil {
						t.Fatalf("%s, %+v: %v", name, o, err)
					}
					for _, x := range v {
						got[k] = append(got[k], float64(x))
					}
				}
			}
			for i, x := range got[0] {
				// Second derivatives add the same terms, but in another order.
				if d := math.Abs(got[1][i] - x); d > 0 && !o.Follow || d > 1e-5*math.Abs(x) {
					t.Errorf("%s, %+v: %v, without Checkpoint %v", name, o, got[1], got[0])
					break
				}
			}
		}
	}
}

// caller calls a function: directly or through Checkpoint.
type caller func(f func(in []*T) []*T, in ...*T) []*T

func direct(f func(in []*T) []*T, in ...*T) []*T { return f(in) }

// part is a random function of the tensors around it and of its arguments.
type part struct {
	ops     []partOp
	args    []int
	results []int
}

type partOp struct {
	kind int
	of   [2]int
	in   *part
}

// randomPart makes a part for a place that has env tensors around it.
func randomPart(r *rand.Rand, env, depth int) *part {
	p := &part{}
	for range 1 + r.IntN(3) {
		p.args = append(p.args, r.IntN(env))
	}
	have := env + len(p.args)
	for range 2 + r.IntN(5) {
		op := partOp{kind: r.IntN(8), of: [2]int{r.IntN(have), have - 1 - r.IntN(min(have, 4))}}
		if depth > 0 && r.IntN(3) == 0 {
			op.in = randomPart(r, have, depth-1)
			have += len(op.in.results)
		} else {
			have++
		}
		p.ops = append(p.ops, op)
	}
	for range 1 + r.IntN(3) {
		p.results = append(p.results, have-1-r.IntN(min(have, 6)))
	}
	return p
}

func (p *part) run(ck caller, env []*T) []*T {
	var args []*T
	for _, i := range p.args {
		args = append(args, env[i])
	}
	return ck(func(in []*T) []*T {
		have := append(slices.Clone(env), in...)
		for _, op := range p.ops {
			x, y := have[op.of[0]], have[op.of[1]]
			switch {
			case op.in != nil:
				have = append(have, op.in.run(ck, have)...)
				continue
			case op.kind == 0:
				y = y.Sin()
			case op.kind == 1:
				y = x.Mul(y)
			case op.kind == 2:
				y = x.Add(y)
			case op.kind == 3:
				y = x.MatMul(y).Tanh()
			case op.kind == 4:
				y = y.Transpose(0, 1)
			case op.kind == 5:
				y = y.Softmax(-1)
			case op.kind == 6:
				y = millrace.Concat(0, y.Slice(millrace.R(1, 3)), x.Slice(millrace.R(0, 1)))
			default:
				y = y.Mul(millrace.UniformOn(y.Stream(), y.DType(), uint64(op.of[0]), 3, 3))
			}
			have = append(have, y)
		}
		var out []*T
		for _, i := range p.results {
			out = append(out, have[i])
		}
		return out
	}, args...)
}

// TestRandomCheckpoints: random nests of Checkpoints give the bits of the plain program's
// derivatives: called, in a scope, in a Recording and in a bound Recording.
func TestRandomCheckpoints(t *testing.T) {
	s := open(t, "cpu").NewStream()
	var in []*T
	for i := range 3 {
		in = append(in, millrace.UniformOn(s, millrace.Float32, uint64(i+1), 3, 3))
	}
	runs := 30
	if testing.Short() {
		runs = 8
	}
	for seed := range uint64(runs) {
		p := randomPart(rand.New(rand.NewPCG(seed, 1)), len(in), 3)
		grad := func(ck caller) func(_ *millrace.Scope, in []*T) ([]*T, error) {
			return func(_ *millrace.Scope, in []*T) ([]*T, error) {
				var ws []*T
				for _, t := range in {
					ws = append(ws, autodiff.Watch(t))
				}
				loss := millrace.FullOn(in[0].Stream(), millrace.Float32, 0)
				for i, y := range p.run(ck, ws) {
					loss = loss.Add(y.Square().MulScalar(float64(i + 1)).Sum())
				}
				if !autodiff.Watched(loss) {
					return in, nil
				}
				g, err := autodiff.Grad(loss, ws...)
				return append(g, autodiff.Detach(loss)), err
			}
		}
		text := func(how string, ts []*T, err error) (text string) {
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, how, err)
			}
			for _, x := range ts {
				v, err := millrace.Values[float32](x)
				if err != nil {
					t.Fatalf("seed %d, %s: %v", seed, how, err)
				}
				text += fmt.Sprint(v)
			}
			return text
		}
		ts, err := grad(direct)(nil, in)
		want := text("plain", ts, err)
		same := func(how string, ts []*T, err error) {
			t.Helper()
			if got := text(how, ts, err); got != want {
				t.Errorf("seed %d, %s: %s, want %s", seed, how, got, want)
			}
		}
		ts, err = grad(autodiff.Checkpoint)(nil, in)
		same("called", ts, err)
		err = s.Scope(func(sc *millrace.Scope) error {
			var own []*T
			for _, t := range in {
				own = append(own, t.To(sc))
			}
			if ts, err = grad(autodiff.Checkpoint)(sc, own); err == nil {
				for _, t := range ts {
					sc.Keep(t)
				}
			}
			return err
		})
		same("in a scope", ts, err)
		r := millrace.NewRecording(grad(autodiff.Checkpoint))
		for range 3 {
			ts, err = r.RunWith(nil, millrace.RunOptions{On: s}, in...)
			same("recorded", ts, err)
		}
		b, err := r.BindWith(millrace.BindOptions{On: s}, in...)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			err = b.Run()
			same("bound", b.Results(), err)
		}
		b.Close()
		r.Release()
	}
}

// TestCheckpointDiffers: if the function does something else in its second call, Grad returns an
// error and never another number. A function that keeps a tensor of its first call for the second
// one does the same thing.
func TestCheckpointDiffers(t *testing.T) {
	s := open(t, "cpu").NewStream()
	seeds, r := millrace.NewGenerator(1), rand.New(rand.NewPCG(1, 2))
	calls := 0
	var kept *T
	w := autodiff.Watch(millrace.FromSliceOn(s, []float64{1, 2}))
	noise := func(x *T, seed uint64) *T { return x.Mul(millrace.UniformOn(s, x.DType(), seed, 2)) }
	for name, c := range map[string]struct {
		f    func(x *T) *T
		same bool
	}{
		"a generator":    {f: func(x *T) *T { return noise(x, seeds.Seed()).Sin() }},
		"normal numbers": {f: func(x *T) *T { return x.Add(millrace.NormalOn(s, x.DType(), seeds.Seed(), 2)).Exp() }},
		"a mask":         {f: func(x *T) *T { return x.MaskedFill(millrace.UniformOn(s, x.DType(), seeds.Seed(), 2).LtScalar(0.5), 0) }},
		"whole numbers": {f: func(x *T) *T {
			return x.Mul(millrace.IntegersOn(s, millrace.Int32, seeds.Seed(), 0, 9, 2).Cast(x.DType()))
		}},
		"a permutation": {f: func(x *T) *T { return x.Take(millrace.PermutationOn(s, millrace.Int32, seeds.Seed(), 2), 0).Exp() }},
		"positions": {f: func(x *T) *T {
			return x.Take(millrace.Multinomial(millrace.Int32, seeds.Seed(), autodiff.Detach(x), 2, true), 0).Exp()
		}},
		"numbers of Go":        {f: func(x *T) *T { return x.Mul(millrace.FromSliceOn(s, []float64{r.Float64(), 1})) }},
		"a scalar":             {f: func(x *T) *T { return x.MulScalar(r.Float64()).Sin() }},
		"another op":           {f: func(x *T) *T { return []*T{x.Sin(), x.Cos()}[calls%2] }},
		"another way":          {f: func(x *T) *T { return []*T{x.Mul(w).Add(x), x.Add(x).Mul(w)}[calls%2] }},
		"another axis":         {f: func(x *T) *T { return x.Unsqueeze(0).Mul(x.Unsqueeze(1)).Sum(calls % 2) }},
		"another shape":        {f: func(x *T) *T { return x.Unsqueeze(calls % 2) }},
		"another dtype":        {f: func(x *T) *T { return x.Cast([]millrace.DType{millrace.Float32, millrace.Float16}[calls%2]) }},
		"a weight that is set": {f: func(x *T) *T { y := x.Mul(w); w.Set(autodiff.Detach(w.Neg())); return y.Exp() }},
		"its argument":         {f: func(x *T) *T { y := x.Exp(); x.Set(x.Neg()); return y }, same: true},
		"a seed":               {f: func(x *T) *T { return noise(x, 7) }, same: true},
		"what it kept": {f: func(x *T) *T {
			if kept == nil {
				kept = millrace.FromSliceOn(s, []float64{3, 4}).Neg()
			}
			return x.Mul(kept).Exp()
		}, same: true},
	} {
		x := autodiff.Watch(millrace.FromSliceOn(s, []float64{1, 2}))
		h := x.MulScalar(0.5)
		y := autodiff.Checkpoint(func(in []*T) []*T { calls++; return []*T{c.f(in[0])} }, h)[0]
		g, err := autodiff.Grad(y.Sum(), x)
		if c.same {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if err := g[0].Eval(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if !errors.Is(err, autodiff.ErrGraph) || !strings.Contains(fmt.Sprint(err), "did something else") {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
}
