package stream

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
)

func (e *env) record(op ir.Op, shape ir.Shape, attr *ir.Attr, args ...Arg) *Value {
	v := new(Value)
	Record(v, e.place(), op, ir.Invalid, shape, attr, args)
	return v
}

// A kernel may compute a reduction without writing it. If the program then needs the result, it
// is recomputed once, and from then on its plan writes it.
func TestCostlyResultsAreWrittenForReads(t *testing.T) {
	e := open(t)
	for turn := range 4 {
		x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
		y := e.op(ir.Sub, t1(x), t1(sum))
		before := e.d.Stats()
		e.want(y, -5, -4, -3, -11, -10, -9)
		after := e.d.Stats()
		if got := after.Kernels - before.Kernels; got != 1 {
			t.Errorf("turn %d: %d kernels, want 1", turn, got)
		}
		e.want(sum, 6, 15)
		again := e.d.Stats().Recomputes - before.Recomputes
		if want := int64(max(0, 1-turn)); again != want {
			t.Errorf("turn %d: computed again %d times, want %d", turn, again, want)
		}
	}
	if n := e.d.Stats().Explorations; n != 3 { // one without it, one for it alone, and one with it
		t.Errorf("%d explorations, want 3", n)
	}
}

// A result that takes many instructions is written too, by the plan made after it was needed
// once. A result that takes few instructions is recomputed each time.
func TestCostlyResultsAreWrittenWhenAskedFor(t *testing.T) {
	for _, c := range []struct{ ops, again int }{{20, 1}, {1, 4}} {
		e := open(t)
		for turn := range 4 {
			x := e.host(e.place(), ir.Shape{3}, 0, 0, 0)
			y := x
			for range c.ops {
				y = e.op(ir.Tanh, t1(y))
			}
			e.want(e.record(ir.Sum, nil, &ir.Attr{Axes: []int{0}}, t1(y)), 0)
			e.want(e.record(ir.Max, nil, &ir.Attr{Axes: []int{0}}, t1(y)), 0)
			if n := e.d.Stats().Recomputes; n != int64(min(turn+1, c.again)) {
				t.Errorf("%d ops, turn %d: computed again %d times", c.ops, turn, n)
			}
		}
	}
}

// A segment has many costly results, and each turn needs another one of them. Finally its plan
// writes all of them.
func TestCostlyResultsAskedForInTurn(t *testing.T) {
	const many = 2*8 + 3 // more than twice the number of plans that a segment keeps
	e := open(t)
	var explored [3 * many]int64
	for turn := range explored {
		x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 3, 4, 5, 6)
		var sums [many]*Value
		all := x
		for i := range sums {
			sums[i] = e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(mul(e, x, float32(i))))
			all = e.op(ir.Sub, t1(all), t1(sums[i]))
		}
		const n = many * (many - 1) / 2
		e.want(all, 1-6*n, 2-6*n, 3-6*n, 4-15*n, 5-15*n, 6-15*n)
		i := turn % many
		e.want(sums[i], float32(6*i), float32(15*i))
		explored[turn] = e.d.Stats().Explorations
	}
	// In the first round, a result that is read alone is a segment of its own.
	if first, last := explored[2*many], explored[3*many-1]; first != last {
		t.Errorf("%d explorations after %d turns, %d after %d: %v", first, 2*many+1, last, 3*many, explored)
	}
}

// A costly result may have been released, as the steps of composite ops are. The results computed
// from it are then written instead: here a mean, whose sum the program cannot request. Results
// that take little further work are recomputed, and no plan is searched for them.
func TestCostlyResultsThatWereReleased(t *testing.T) {
	for _, rooted := range []bool{false, true} {
		e := open(t)
		for turn := range 6 {
			x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 5, 4, 6, 8)
			sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
			wide := e.record(ir.Expand, ir.Shape{2, 3}, nil, t1(sum))
			Release(sum)
			mean := mul(e, wide, 0.5)
			Release(wide)
			if rooted {
				mean = e.op(ir.Sqrt, t1(mean))
			}
			y := e.op(ir.Sub, t1(x), t1(mean))
			before := e.d.Stats().Recomputes
			e.want(mul(e, y, 0), 0, 0, 0, 0, 0, 0)
			if rooted {
				mean = e.op(ir.Mul, t1(mean), t1(mean))
			}
			e.want(add(e, mean, 1), 5, 5, 5, 10, 10, 10)
			if again := e.d.Stats().Recomputes - before; !rooted && turn > 0 && again > 0 {
				t.Errorf("turn %d: computed again %d times", turn, again)
			}
		}
		if n := e.d.Stats().Explorations; n > 5 {
			t.Errorf("%d explorations, 5 are enough", n)
		}
	}
}

// A costly result that another row of the kernel reads is in memory, and stays there.
func TestCostlyResultsOfOtherRowsAreKept(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2, 2}, 1, 2, 3, 4)
	sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
	back := e.record(ir.Slice, ir.Shape{2, 1}, &ir.Attr{Start: []int{1, 0}, Step: []int{-1, 1}}, t1(sum))
	e.want(e.op(ir.Sub, t1(x), t1(back)), -6, -5, 0, 1)
	e.want(sum, 3, 7)
	if n := e.d.Stats().Recomputes; n != 0 {
		t.Errorf("computed again %d times", n)
	}
}

// Starts and steps are not part of a plan. A plan for padding along one dim does not serve
// padding along another.
func TestMovesAtOtherPlaces(t *testing.T) {
	e := open(t)
	pad := func(start, step []int, shape ir.Shape, want ...float32) {
		x := e.host(e.place(), ir.Shape{1, 2}, 1, 2)
		p := e.record(ir.Pad, shape, &ir.Attr{Start: start, Step: step}, t1(x), f1(9))
		e.want(mul(e, p, 1), want...)
	}
	pad([]int{0, 1}, []int{1, 1}, ir.Shape{1, 4}, 9, 1, 2, 9)
	pad([]int{0, 0}, []int{1, 1}, ir.Shape{1, 4}, 1, 2, 9, 9)
	pad([]int{0, 2}, []int{1, 1}, ir.Shape{1, 4}, 9, 9, 1, 2)
	pad([]int{0, 1}, []int{1, 2}, ir.Shape{1, 4}, 9, 1, 9, 2)
	pad([]int{0, 0}, []int{1, 3}, ir.Shape{1, 4}, 1, 9, 9, 2)
	pad([]int{1, 0}, []int{1, 1}, ir.Shape{2, 2}, 9, 9, 1, 2)
	pad([]int{0, 0}, []int{1, 1}, ir.Shape{2, 2}, 1, 2, 9, 9)
	if n := e.d.Stats().Explorations; n != 3 {
		t.Errorf("%d explorations, want 3", n)
	}
}

// oddView returns a view with elements 0 3 1 4 2 5, and the tensor from which its base was
// computed. No strides describe the view.
func oddView(e *env) (x, flat *Value) {
	x = e.host(e.place(), ir.Shape{2, 3}, 0, 1, 2, 3, 4, 5)
	y := add(e, x, 0)
	tr := e.record(ir.Permute, nil, &ir.Attr{Axes: []int{1, 0}}, t1(y))
	flat = e.record(ir.Reshape, ir.Shape{6}, nil, t1(tr))
	e.want(y, 0, 1, 2, 3, 4, 5)
	e.want(flat, 0, 3, 1, 4, 2, 5)
	return x, flat
}

// Indexing a view that no strides describe uses a dense copy.
func TestLookUpInAnOddView(t *testing.T) {
	e := open(t)
	_, flat := oddView(e)
	idx := new(Value)
	var data []byte
	for _, i := range []uint32{5, 0, 1} {
		data = binary.NativeEndian.AppendUint32(data, i)
	}
	FromHost(idx, e.place(), ir.Int32, ir.Shape{3}, data)
	for range 2 {
		e.want(mul(e, e.record(ir.Gather, nil, &ir.Attr{Axes: []int{0}}, t1(flat), t1(idx)), 2), 10, 0, 6)
	}
	if n := e.d.Stats().Fallbacks; n != 2 {
		t.Errorf("%d copies counted, want 2", n)
	}
}

// The same holds if ops run one by one. The copy exists as long as an op may start from it.
func TestLookUpInAnOddViewOneByOne(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Check = true })
	x, flat := oddView(e)
	at := e.host(e.place(), ir.Shape{3}, 5, 0, 1)
	idx := new(Value)
	Record(idx, e.place(), ir.Cast, ir.Int32, nil, nil, []Arg{t1(at)})
	got := e.record(ir.Gather, nil, &ir.Attr{Axes: []int{0}}, t1(flat), t1(idx))
	other := add(e, x, 7) // a later kernel whose result has the size of the copy
	e.want(other, 7, 8, 9, 10, 11, 12)
	e.want(got, 5, 0, 3)
}

// A window of a tensor in memory is a view.
func TestWindowIsAView(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{5}, 0, 1, 2, 3, 4)
	w := e.record(ir.Window, ir.Shape{2, 3}, &ir.Attr{Axes: []int{0}, Step: []int{2, 1}}, t1(x))
	e.want(w, 0, 1, 2, 2, 3, 4)
	if n := e.d.Stats().Kernels; n != 0 {
		t.Errorf("%d kernels for a view", n)
	}
}

// A plan may write a result that is cheap in itself. It does so in another process too, and
// results computed from it are recomputed from there.
func TestResultsThatWereAskedForOutliveTheirDevice(t *testing.T) {
	dir := t.TempDir()
	turn := func(e *env, all bool) {
		e.t.Helper()
		x := e.host(e.place(), ir.Shape{2, 3}, 1, 2, 5, 4, 6, 8)
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
		wide := e.record(ir.Expand, ir.Shape{2, 3}, nil, t1(sum))
		Release(sum)
		mean := mul(e, wide, 0.5)
		Release(wide)
		more := add(e, mean, 1)
		e.want(e.op(ir.Sub, t1(x), t1(more)), -4, -3, 0, -6, -4, -2)
		if all {
			e.want(mul(e, mean, 2), 8, 8, 8, 18, 18, 18)
		}
		before := e.d.Stats().Recomputes
		e.want(mul(e, more, 2), 10, 10, 10, 20, 20, 20)
		if again := e.d.Stats().Recomputes - before; again != 1 {
			t.Errorf("computed again %d times, want 1", again)
		}
	}
	first := another(t, dir, func(e *env) {
		for range 3 {
			turn(e, true)
		}
	})
	if first.Recomputes != 4 { // the derived result each time, and the result itself once
		t.Errorf("computed again %d times, want 4", first.Recomputes)
	}
	again := another(t, dir, func(e *env) {
		for range 2 {
			turn(e, false)
		}
	})
	if again.Explorations != 0 {
		t.Errorf("%d explorations with a cache", again.Explorations)
	}
}

// A plan may have a result in memory only for its own steps; it then does not write the result.
// If an earlier plan learned that the program needs the result, a plan that writes it is made.
func TestResultsThatWereAskedForOfAnotherPlan(t *testing.T) {
	e := open(t)
	turn := func(rows, step int, asked bool) (explored int64) {
		t.Helper()
		before := e.d.Stats().Explorations
		part := e.host(e.place(), ir.Shape{2, 2}, 0.5, 0.5, 0.5, 0.5)
		x := e.record(ir.Pad, ir.Shape{rows, 2}, &ir.Attr{Start: []int{0, 0}, Step: []int{step, 1}}, t1(part), f1(0.5))
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x)) // 1 everywhere
		end := sum
		for range 20 { // too much work to do twice
			next := e.op(ir.Exp, t1(end))
			Release(end)
			end = e.op(ir.Log, t1(next))
			Release(next)
		}
		more := add(e, end, 1)
		at := e.host(e.place(), ir.Shape{1, 1}, 1)
		idx := new(Value)
		Record(idx, e.place(), ir.Cast, ir.Int32, nil, nil, []Arg{t1(at)})
		back := e.record(ir.Gather, nil, &ir.Attr{Axes: []int{0}}, t1(end), t1(idx))
		if _, err := e.read(e.op(ir.Sub, t1(e.op(ir.Sub, t1(x), t1(back))), t1(more))); err != nil {
			t.Fatal(err)
		}
		explored = e.d.Stats().Explorations - before
		if asked {
			e.want(more, slices.Repeat([]float32{2}, rows)...)
		}
		return explored
	}
	for i, c := range []struct {
		rows, step int
		asked      bool
		explored   int64
	}{
		{3, 1, false, 1},
		{3, 2, false, 1}, // the plan for steps of one does not fit
		{3, 1, true, 0},
		{4, 2, true, 1}, // the result is now known to be needed
		{5, 2, true, 0},
		{4, 1, true, 0},
	} {
		if n := turn(c.rows, c.step, c.asked); n != c.explored {
			t.Errorf("turn %d: %d explorations, want %d", i, n, c.explored)
		}
	}
}
