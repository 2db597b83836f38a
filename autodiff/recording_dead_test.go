package autodiff_test

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// TestDeadCodeInRecordings: values that a recorded step computes and drops cost nothing. The step
// is recorded once, is bound, and runs the same kernels as without them, whatever their derivatives
// would keep.
func TestDeadCodeInRecordings(t *testing.T) {
	step := func(w *T, dead func(w, x *T), after bool) func(_ *millrace.Scope, in []*T) ([]*T, error) {
		return func(_ *millrace.Scope, in []*T) ([]*T, error) {
			if !after {
				dead(w, in[0])
			}
			loss := in[0].MatMul(w).Square().Mean()
			g, err := autodiff.Grad(loss, w)
			if err != nil {
				return nil, err
			}
			if after {
				dead(w, in[0])
			}
			w.Set(w.Sub(g[0].MulScalar(0.1)))
			return []*T{autodiff.Detach(loss)}, nil
		}
	}
	index := millrace.FromSlice([]int32{1, 0})
	for _, c := range []struct {
		name string
		dead func(w, x *T)
	}{
		{"nothing", func(w, x *T) {}},
		{"elementwise", func(w, x *T) { w.Square() }},
		{"a scalar", func(w, x *T) { w.AddScalar(1) }},
		{"its own product", func(w, x *T) { w.Mul(w).Exp() }},
		{"a reduction", func(w, x *T) { w.Square().Sum() }},
		{"the largest", func(w, x *T) { w.Max(0) }},
		{"rows", func(w, x *T) { w.Softmax(-1) }},
		{"statistics", func(w, x *T) { w.Std(1) }},
		{"a scan", func(w, x *T) { w.CumSum(0).Exp() }},
		{"a sort", func(w, x *T) { w.Sort(0) }},
		{"a product", func(w, x *T) { w.MatMul(w) }},
		{"a product with the input", func(w, x *T) { x.MatMul(w) }},
		{"a gather", func(w, x *T) { w.Take(index, 0).Sin() }},
		{"a scatter", func(w, x *T) { w.Put(index, x.Mul(w), 0, millrace.CombineAdd) }},
		{"random numbers", func(w, x *T) { w.Mul(millrace.UniformOn(x.Stream(), w.DType(), 1, 2, 2)).Sum() }},
		{"views", func(w, x *T) { w.Transpose(0, 1).Slice(millrace.R(0, 1)) }},
		{"of a view", func(w, x *T) { w.Transpose(0, 1).Exp().Sum(0) }},
		{"of the input", func(w, x *T) { x.Square().Sum() }},
		{"another handle", func(w, x *T) { autodiff.Watch(w).Exp() }},
		{"a derivative", func(w, x *T) {
			h := autodiff.Watch(w)
			autodiff.Grad(h.Exp().Sum(), h)
		}},
		{"a checkpoint", func(w, x *T) {
			autodiff.Checkpoint(func(in []*T) []*T { return []*T{in[0].Exp()} }, w)
		}},
		{"several", func(w, x *T) {
			y := w.Square()
			y.Sum()
			y.Mul(w).Max(0)
		}},
	} {
		for _, after := range []bool{false, true} {
			var want string
			var kernels int64
			for _, dead := range []func(w, x *T){func(w, x *T) {}, c.dead} {
				d := open(t, "cpu:compile=off")
				s := d.NewStream()
				u := millrace.UniformOn(s, millrace.Float32, 1, 2, 2)
				w := autodiff.Watch(u)
				u.Release() // now no other handle has its value
				x := millrace.UniformOn(s, millrace.Float32, 2, 2, 2)
				for _, t := range []*T{w, x} {
					t.Eval()
				}
				calls := 0
				f := step(w, dead, after)
				r := millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) {
					calls++
					return f(sc, in)
				})
				got := ""
				note := func(ts []*T, err error) {
					t.Helper()
					if err != nil {
						t.Fatalf("%s: %v", c.name, err)
					}
					for _, x := range append(ts, w) {
						v, err := millrace.Values[float32](x)
						if err != nil {
							t.Fatalf("%s: %v", c.name, err)
						}
						got += fmt.Sprint(v)
					}
				}
				for range 4 {
					note(r.RunWith(nil, millrace.RunOptions{On: s}, x))
				}
				before := d.Stats().Kernels
				note(r.RunWith(nil, millrace.RunOptions{On: s}, x))
				ran := int64(d.Stats().Kernels - before)
				b, err := r.BindWith(millrace.BindOptions{On: s}, x)
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					continue
				}
				for range 3 {
					note(b.Results(), b.Run())
				}
				b.Close()
				if want == "" {
					want, kernels = got, ran
				}
				if calls != 1 || got != want || ran != kernels {
					t.Errorf("%s, after the loss %v: called %d times, %d kernels a run, without it %d; %s, want %s", c.name, after, calls, ran, kernels, got, want)
				}
			}
		}
	}
}

// TestDerivativeBehindSet: if a weight is set before a derivative is taken, the derivative uses the
// old value, in each run.
func TestDerivativeBehindSet(t *testing.T) {
	f := func(w *T) func(_ *millrace.Scope, in []*T) ([]*T, error) {
		return func(_ *millrace.Scope, in []*T) ([]*T, error) {
			y := in[0].MatMul(w).Mul(w)
			w.Set(w.MulScalar(0.9))
			return autodiff.Grad(y.Sum(), w)
		}
	}
	s := open(t, "cpu").NewStream()
	x := millrace.UniformOn(s, millrace.Float32, 2, 2, 2)
	var got [3]string
	for k := range got {
		u := millrace.UniformOn(s, millrace.Float32, 1, 2, 2)
		w := autodiff.Watch(u)
		u.Release()
		for _, t := range []*T{w, x} {
			t.Eval()
		}
		calls := 0
		own := f(w)
		r := millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) {
			calls++
			return own(sc, in)
		})
		var b *millrace.BoundRecording
		for range 4 {
			var g []*T
			var err error
			switch {
			case k == 0:
				g, err = own(nil, []*T{x})
			case k == 1:
				g, err = r.RunWith(nil, millrace.RunOptions{On: s}, x)
			default:
				if b == nil {
					if b, err = r.BindWith(millrace.BindOptions{On: s}, x); err != nil {
						t.Fatal(err)
					}
					defer b.Close()
				}
				g, err = b.Results(), b.Run()
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range append(g, w) {
				v, err := millrace.Values[float32](x)
				if err != nil {
					t.Fatal(err)
				}
				got[k] += fmt.Sprint(v)
			}
		}
		if k > 0 && (calls != 1 || got[k] != got[0]) {
			t.Errorf("way %d: called %d times, %s, want %s", k, calls, got[k], got[0])
		}
	}
}
