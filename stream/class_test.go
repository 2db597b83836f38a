package stream

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/ir"
)

// sizes opens a device and returns a program whose best plan depends on the number of rows: one
// kernel for few rows, two for many. The program returns the number of kernels that ran, and
// compares its values with those of a device that fuses nothing.
func sizes(t *testing.T, change ...func(*device.Options)) (*env, func(rows int) int) {
	t.Helper()
	last := 0
	background := func(o *device.Options) { o.Explore = device.ExploreBackground }
	e := open(t, append([]func(*device.Options){background, func(o *device.Options) {
		o.Trace = &device.Trace{Flush: func(ev device.FlushEvent) { last = ev.Kernels }}
	}}, change...)...)
	unfused := open(t, func(o *device.Options) { o.Fusion = device.FusionOff })
	return e, func(rows int) int {
		t.Helper()
		const d = 8
		of := func(e *env) *Value {
			x := e.host(e.place(), ir.Shape{rows, d}, slices.Repeat([]float32{1, 2, 0.3, 4}, rows*d/4)...)
			w := e.host(e.place(), ir.Shape{d}, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -0.8)
			return e.op(ir.Add, t1(x), t1(e.op(ir.Erf, t1(w))))
		}
		want, err := unfused.read(of(unfused))
		if err != nil {
			t.Fatal(err)
		}
		e.want(of(e), want...)
		return last
	}
}

const few, many = 3, 1 << 14

// A plan found for one size serves other sizes at once. A better plan for them is searched for in
// the background. Both plans stay.
func TestClassesInTheBackground(t *testing.T) {
	for _, order := range [][2]int{{few, many}, {many, few}} {
		e, run := sizes(t)
		ran := func(rows, kernels int, explored, searched int64) {
			t.Helper()
			if n := run(rows); n != kernels {
				t.Errorf("first %d: %d rows by %d kernels, want %d", order[0], rows, n, kernels)
			}
			e.idle()
			e.explored("", explored, searched)
		}
		first, second := 1, 2
		if order[0] == many {
			first, second = 2, 1
		}
		ran(order[0], first, 1, 0)
		ran(order[0], first, 1, 0)
		ran(order[1], first, 2, 1) // by the plan that exists
		ran(order[1], second, 2, 1)
		ran(order[0], first, 2, 1)
		ran(order[1], second, 2, 1)
		if n := e.d.Stats().Plans; n != 1 {
			t.Errorf("%d leaves", n)
		}
	}
}

// If the program waits for searches, it also waits for searches for other sizes.
func TestClassesInTheForeground(t *testing.T) {
	e, run := sizes(t, func(o *device.Options) { o.Explore = device.ExploreWait })
	for _, c := range []struct{ rows, kernels int }{{few, 1}, {many, 2}, {few, 1}, {many, 2}} {
		if n := run(c.rows); n != c.kernels {
			t.Errorf("%d rows by %d kernels, want %d", c.rows, n, c.kernels)
		}
	}
	e.explored("two sizes", 2, 0)
}

// Sizes within a class cause no exploration.
func TestSizesInsideAClass(t *testing.T) {
	e, run := sizes(t)
	for _, rows := range []int{few, 1, 2, 7, 8, 31, few} {
		run(rows)
		e.idle()
	}
	e.explored("few rows", 1, 0)
}

// Plans of several classes outlive the process. Each is found for its own sizes.
func TestClassesOutliveTheirDevice(t *testing.T) {
	dir := t.TempDir()
	for turn := range 3 {
		e, run := sizes(t, cached(dir), func(o *device.Options) { o.Explore = device.ExploreWait })
		order := []int{few, many, few}
		if turn == 2 {
			order = []int{many, few, many}
		}
		for _, rows := range order {
			want := 1
			if rows == many {
				want = 2
			}
			if n := run(rows); n != want {
				t.Errorf("turn %d: %d rows by %d kernels, want %d", turn, rows, n, want)
			}
		}
		if n := e.d.Stats().Explorations; turn == 0 && n != 2 || turn > 0 && n != 0 {
			t.Errorf("turn %d: %d explorations", turn, n)
		}
		if err := e.d.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// knownOf returns the plan that computed a value.
func knownOf(t *testing.T, v *Value) *planstore.Known {
	t.Helper()
	st, err := materialise(v, nil, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Release()
	return st.By.(*planstore.Known)
}

// A search whose result is the existing plan widens the plan's class and is not repeated. One
// exploration leads to a bounded number of searches.
func TestClassesWiden(t *testing.T) {
	e := open(t)
	run := func(n int) *planstore.Known {
		y := mul(e, e.host(e.place(), ir.Shape{n}, make([]float32, n)...), 2)
		e.want(y, make([]float32, n)...)
		return knownOf(t, y)
	}
	en := run(4)
	for i := range 2 * planstore.MaxClasses {
		en.SetClass([]fusion.Size{{Of: 0, Over: -1, Plus: 5}})
		run(5)
		want := int64(min(1+i, 1+planstore.MaxClasses))
		e.explored("inside", want, 0)
		if run(7+i) != en {
			t.Error("another plan")
		}
		e.explored("outside", min(want+1, 1+planstore.MaxClasses), 0)
		if i < planstore.MaxClasses && en.Sizes.Load() != nil {
			t.Errorf("the class is still %v", *en.Sizes.Load())
		}
		run(9 + i)
		e.explored("widened", min(want+1, 1+planstore.MaxClasses), 0)
	}
}

// A batch of one uses a plan that has broadcasts. A search for a better plan must not use that
// batch's form: its dims are equal by chance and differ in other batches.
func TestSearchesAreOfTheLeafsOwnForm(t *testing.T) {
	e, _, known := searching(t, nil)
	e.d.plans.Unpaid.Store(planstore.GreedyAfter)
	run := func(n int) {
		t.Helper()
		x := e.host(e.place(), ir.Shape{n, 2}, make([]float32, 2*n)...)
		b := e.host(e.place(), ir.Shape{1, 2}, 0, 0)
		c := e.op(ir.Add, t1(x), t1(b))
		y := e.op(ir.Add, t1(e.op(ir.Exp, t1(mul(e, c, 3)))), t1(e.op(ir.Exp, t1(mul(e, c, 3)))))
		e.want(y, slices.Repeat([]float32{2}, 2*n)...)
		e.idle()
	}
	run(4)
	e.explored("four", 1, 0)
	run(1)
	e.explored("one", 1, 0)
	run(3)
	e.explored("three", 2, 1)
	run(5)
	run(1)
	same(t, *known, "greedy", "greedy again", "greedy again", "best again", "best again")
	if n := e.d.Stats().Fallbacks; n != 0 {
		t.Errorf("%d fallbacks", n)
	}
}
