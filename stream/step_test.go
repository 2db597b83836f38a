package stream

import (
	"fmt"
	"math"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// stepper runs a training step repeatedly.
type stepper struct {
	e      *env
	s      *Stream
	p      progen.Step
	params []*Value
	data   [][]byte
}

func newStepper(e *env, p progen.Step) *stepper {
	x := &stepper{e: e, s: e.d.NewStream(), p: p}
	for i, in := range p.Inputs {
		d := ir.NewDense(in)
		for j := range in.Shape.Elems() {
			d.Set(j, uint64(math.Float32bits(0.4*float32(math.Sin(float64(5*i+j+1))))))
		}
		if x.data = append(x.data, d.Data); i >= p.Data {
			v := new(Value)
			FromHost(v, Place{S: x.s}, in.DT, in.Shape, d.Data)
			x.params = append(x.params, v)
		}
	}
	return x
}

// step runs one step in a scope and returns the bytes of the loss.
func (x *stepper) step() []byte {
	sc := x.s.OpenScope()
	p := Place{S: x.s, Scope: sc}
	var vals []*Value
	for i, in := range x.p.Inputs {
		if i >= x.p.Data {
			vals = append(vals, x.params[i-x.p.Data])
			continue
		}
		v := new(Value)
		FromHost(v, p, in.DT, in.Shape, x.data[i])
		vals = append(vals, v)
	}
	for i := range x.p.Nodes {
		n := &x.p.Nodes[i]
		var args [3]Arg
		for k, a := range n.Args[:n.NArgs] {
			if a.Scalar {
				args[k].Bits = x.p.Scalars[a.ID].Bits
			} else {
				args[k].V = vals[a.ID]
			}
		}
		v := new(Value)
		recordNode(v, p, n, args[:n.NArgs])
		vals = append(vals, v)
	}
	loss := vals[x.p.Outputs[0]]
	sc.Keep(loss)
	for i, id := range x.p.Outputs[1:] {
		Set(x.params[i], vals[id])
	}
	sc.Close()
	got := make([]byte, 4)
	if err := Read(loss, got); err != nil {
		x.e.t.Fatal(err)
	}
	Release(loss)
	return got
}

// A step of thousands of ops is one segment. None of its results is computed twice, and it is
// planned once.
func TestStepIsOneSegment(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Device, o.Explore = "null", device.ExploreBackground })
	x := newStepper(e, progen.Transformer(6, 3, 8, 24))
	if n := len(x.p.Nodes); n < 2000 || n > stepCap {
		t.Fatalf("a step of %d ops", n)
	}
	x.step()
	e.d.plans.Search.Wait()
	x.step()
	was := e.d.Stats()
	for range 5 {
		x.step()
	}
	now := e.d.Stats()
	if n := now.Segments - was.Segments; n != 5 {
		t.Errorf("5 steps are %d segments", n)
	}
	if now.Recomputes != 0 || now.Explorations != was.Explorations || now.Fallbacks != 0 {
		t.Errorf("%d recomputations, %d explorations, %d fallbacks", now.Recomputes, now.Explorations-was.Explorations, now.Fallbacks)
	}
	if now.Kernels-was.Kernels > int64(5*len(x.p.Nodes)/4) {
		t.Errorf("%d kernels", now.Kernels-was.Kernels)
	}
}

// The results of a step have the same bits as its ops one by one, wherever the step is cut.
func TestStepsOpByOp(t *testing.T) {
	for name, p := range map[string]progen.Step{"chain": progen.Chain(20, 40), "transformer": progen.Transformer(2, 2, 4, 6)} {
		var want []string
		for _, o := range []device.Options{
			{QueueCap: 1, Fusion: device.FusionOff}, {}, {QueueCap: 7}, {QueueCap: 256}, {Fusion: device.FusionGreedy},
			{Explore: device.ExploreWait}, {PinnedLimit: 1}, {MemoryLimit: 1 << 20, Check: true},
		} {
			t.Run(fmt.Sprintf("%s,%+v", name, o), func(t *testing.T) {
				o.Device = "ref"
				e := open(t, func(d *device.Options) { *d = o })
				x := newStepper(e, p)
				var got []string
				for range 3 {
					got = append(got, fmt.Sprintf("loss % x", x.step()))
				}
				for i, v := range x.params {
					data := make([]byte, len(x.data[x.p.Data+i]))
					if err := Read(v, data); err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("parameter %d % x", i, data))
				}
				if want == nil {
					want = got
				}
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("%s, op by op %s", got[i], want[i])
					}
				}
				if n := e.d.Stats().Fallbacks; n > 0 {
					t.Errorf("%d fallbacks", n)
				}
			})
		}
	}
}

// BenchmarkStep measures the cost of a step of a small model apart from its kernels.
func BenchmarkStep(b *testing.B) {
	d, err := Open(device.Options{Device: "null"})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	x := newStepper(&env{nil, d}, progen.Transformer(6, 3, 8, 24))
	x.step()
	d.plans.Search.Wait()
	for range 5 {
		x.step()
	}
	b.ReportAllocs()
	for b.Loop() {
		x.step()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(x.p.Nodes)), "ns/op-in-step")
}

// A virtual value is recomputed for one reader and released before the segment runs. It is not
// written, unless the reader's result is virtual itself: a recipe must not start from ever more
// segments.
func TestReadAndReleased(t *testing.T) {
	const n = 1000
	for _, c := range []struct {
		name    string
		virtual bool
		written int64
	}{{"read", false, 1}, {"read by what is virtual", true, 2}} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t, func(o *device.Options) { o.Device = "null" })
			sync := func() {
				if err := e.d.Default().Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			x := e.host(e.place(), ir.Shape{n}, make([]float32, n)...)
			y := mul(e, x, 2)
			z := add(e, y, 1)
			sync()
			was := e.d.Stats()
			w := e.op(ir.Exp, t1(y))
			if c.virtual {
				w = add(e, w, 1)
			}
			Release(y)
			sync()
			now := e.d.Stats()
			if got := (now.Runtime.BytesWritten - was.Runtime.BytesWritten) / 4 / n; got != c.written || now.Recomputes != was.Recomputes+1 {
				t.Errorf("%d results written, want %d; %d computed again", got, c.written, now.Recomputes-was.Recomputes)
			}
			Release(w)
			Release(z)
			Release(x)
		})
	}
}

// The last value to which a handle was set is written together with the results computed from it,
// with no recomputation. The values to which the handle was set before are not written.
func TestSetIsWritten(t *testing.T) {
	const n = 1000
	e := open(t, func(o *device.Options) { o.Device = "null" })
	m := e.host(e.place(), ir.Shape{n}, make([]float32, n)...)
	w := e.host(e.place(), ir.Shape{n}, make([]float32, n)...)
	step := func() {
		for range 2 {
			next := mul(e, m, 0.9)
			Set(m, next)
			Set(w, e.op(ir.Sub, t1(w), t1(mul(e, m, 0.1))))
		}
		if err := e.d.Default().Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step()
	was := e.d.Stats()
	step()
	now := e.d.Stats()
	if got := (now.Runtime.BytesWritten - was.Runtime.BytesWritten) / 4 / n; got != 2 || now.Recomputes != 0 {
		t.Errorf("%d results written, want 2; %d computed again", got, now.Recomputes)
	}
}

// Looking for a loop in a long step takes no longer if some of its items belong to recipes.
func TestLongStepsAreNotGoneThrough(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Device = "null" })
	s := e.d.NewStream()
	x := e.host(Place{S: s}, ir.Shape{8}, make([]float32, 8)...)
	virtual := mul(e, x, 2)
	e.want(add(e, virtual, 1), make([]float32, 8)...)
	sc := s.OpenScope()
	defer sc.Close()
	y := e.op(ir.Exp, t1(virtual))
	for i := range stepCap * 3 / 4 {
		if y = e.op(ir.Add, t1(y), t1(x)); i < stepWindow {
			y = e.op(ir.Mul, t1(y), t1(x))
		}
	}
	if s.extra == 0 || s.q.Len() < stepCap/2 {
		t.Fatalf("%d items of recipes, %d ops", s.extra, s.q.Len())
	}
	was := e.d.Stats().Segments
	if n := testing.AllocsPerRun(100, func() { y = e.op(ir.Add, t1(y), t1(x)) }); n > 4 {
		t.Errorf("%v allocations an op", n)
	}
	if n := e.d.Stats().Segments - was; n > 0 {
		t.Errorf("it was cut into %d more segments", n)
	}
}
