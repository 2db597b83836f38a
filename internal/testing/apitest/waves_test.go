package apitest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// updates is a step of an optimiser: new moments and weights of parameters of many shapes, which
// replace the old ones.
func updates(sc *millrace.Scope, params, moments, grads []*millrace.Tensor) {
	for i := range params {
		m := moments[i].MulScalar(0.9).Add(grads[i])
		params[i].Set(params[i].Sub(m.MulScalar(0.1)))
		moments[i].Set(m)
	}
}

// heads are the products of the heads of attention, one by one; their operands are views of one
// tensor.
func heads(x *millrace.Tensor, n int) *millrace.Tensor {
	var out []*millrace.Tensor
	width := x.Shape()[1] / n
	for i := range n {
		h := x.Slice(millrace.All, millrace.R(i*width, (i+1)*width))
		out = append(out, h.MatMul(h.T()).MatMul(h))
	}
	return millrace.Concat(1, out...)
}

// TestWaves: independent launches of one plan run together, and give the same results as one by
// one.
func TestWaves(t *testing.T) {
	const params, steps = 60, 3
	optimiser := func(t *testing.T, spec string) (out []float32, grouped, launches int64) {
		dev := openSpec(t, spec)
		var w, m, g []*millrace.Tensor
		for i := range params {
			shape := []int{1 + i%7, 64 + 16*i}
			w = append(w, millrace.NormalOn(dev, millrace.Float32, uint64(i), shape...))
			m = append(m, millrace.NormalOn(dev, millrace.Float32, uint64(i)+100, shape...))
			g = append(g, millrace.NormalOn(dev, millrace.Float32, uint64(i)+200, shape...))
		}
		if err := dev.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := dev.Stats().Runtime
		for range steps {
			updates(nil, w, m, g)
			if err := dev.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		after := dev.Stats().Runtime
		for _, x := range append(w, m...) {
			v, err := millrace.Values[float32](x)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v...)
		}
		return out, after.Grouped - before.Grouped, after.Launches - before.Launches
	}
	products := func(t *testing.T, spec string) (out []float32, grouped, launches int64) {
		dev := openSpec(t, spec)
		x := millrace.NormalOn(dev, millrace.Float32, 7, 96, 6*32)
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
		before := dev.Stats().Runtime
		out, err := millrace.Values[float32](heads(x, 6))
		if err != nil {
			t.Fatal(err)
		}
		after := dev.Stats().Runtime
		return out, after.Grouped - before.Grouped, after.Launches - before.Launches
	}
	for name, c := range map[string]struct {
		run   func(t *testing.T, spec string) ([]float32, int64, int64)
		least int64 // launches that run beside others
	}{"updates": {optimiser, params * steps}, "heads": {products, 12}} {
		t.Run(name, func(t *testing.T) {
			want, none, _ := c.run(t, "cpu:fusion=off,threads=1,tier=0,queue=256")
			if none != 0 {
				t.Errorf("%d launches ran beside others on one thread", none)
			}
			for _, spec := range []string{"cpu:explore=wait,threads=2,tier=0,queue=256", "cpu:fusion=greedy,threads=4,tier=0", "cpu:fusion=off,threads=3,tier=0"} {
				got, grouped, launches := c.run(t, spec)
				for i, v := range got {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						t.Fatalf("%s: element %d is %v, not %v", spec, i, v, want[i])
					}
				}
				t.Logf("%s: %d of %d launches ran beside others", spec, grouped, launches)
				if spec == "cpu:explore=wait,threads=2,tier=0,queue=256" && grouped < c.least {
					t.Errorf("%s: %d of %d launches ran beside others", spec, grouped, launches)
				}
			}
		})
	}
}

// TestWavesReplayed: a Recording's launches run together as outside of one, and are prepared.
func TestWavesReplayed(t *testing.T) {
	const params, steps = 40, 8
	run := func(spec string, record bool) (out []float32, stats millrace.Stats) {
		dev := openSpec(t, spec)
		s := dev.NewStream()
		var w, m, g []*millrace.Tensor
		for i := range params {
			shape := []int{1 + i%7, 64 + 16*i}
			w = append(w, millrace.NormalOn(s, millrace.Float32, uint64(i), shape...))
			m = append(m, millrace.NormalOn(s, millrace.Float32, uint64(i)+100, shape...))
			g = append(g, millrace.NormalOn(s, millrace.Float32, uint64(i)+200, shape...))
		}
		for _, x := range slices.Concat(w, m, g) {
			if err := x.Eval(); err != nil {
				t.Fatal(err)
			}
		}
		step := func(sc *millrace.Scope, grads []*millrace.Tensor) ([]*millrace.Tensor, error) {
			updates(sc, w, m, grads)
			return nil, nil
		}
		rec := millrace.NewRecording(step)
		defer rec.Release()
		for range steps {
			var err error
			if record {
				_, err = rec.RunWith(nil, millrace.RunOptions{On: s}, g...)
			} else {
				err = s.Scope(func(sc *millrace.Scope) error {
					_, err := step(sc, g)
					return err
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range slices.Concat(w, m) {
			v, err := millrace.Values[float32](x)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v...)
		}
		return out, dev.Stats()
	}
	want, _ := run("cpu:fusion=off,threads=1,tier=0", false)
	for _, spec := range []string{"cpu:explore=wait,threads=2,compile=off", "cpu:explore=wait,threads=4", "cpu:explore=wait,threads=1,compile=off"} {
		got, s := run(spec, true)
		for i, v := range got {
			if math.Float32bits(v) != math.Float32bits(want[i]) {
				t.Fatalf("%s: element %d is %v, not %v", spec, i, v, want[i])
			}
		}
		t.Logf("%s: %d launches, %d prepared, %d beside others, %d replays", spec, s.Runtime.Launches, s.Runtime.Prepared, s.Runtime.Grouped, s.Replays)
		if s.Replays < steps-3 {
			t.Errorf("%s: %d replays of %d steps", spec, s.Replays, steps)
		}
		if s.Runtime.Prepared < params*(steps-5) {
			t.Errorf("%s: %d of %d launches were prepared", spec, s.Runtime.Prepared, s.Runtime.Launches)
		}
		if many := !strings.Contains(spec, "threads=1"); many != (s.Runtime.Grouped >= params*(steps-2)) {
			t.Errorf("%s: %d of %d launches ran beside others", spec, s.Runtime.Grouped, s.Runtime.Launches)
		}
	}
}
