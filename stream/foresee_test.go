package stream

import (
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
)

// costly records ops of 20 instructions and more each, so that an element of the result takes
// several hundred. 0 stays 0.
func costly(e *env, x *Value, ops int) *Value {
	for range ops {
		x = e.op(ir.Tanh, t1(x))
	}
	return x
}

// cheap records a few ops of one instruction.
func cheap(e *env, x *Value) *Value { return e.op(ir.Maximum, t1(add(e, mul(e, x, 2), -3)), f1(0)) }

func total(e *env, op ir.Op, x *Value) *Value {
	return e.record(op, nil, &ir.Attr{Axes: []int{0}}, t1(x))
}

// A costly result is computed once for several reads, from the first turn on, whatever is read
// first: the sum over it, over a cheap function of it, or such a function itself.
func TestSeveralReadsComputeOnce(t *testing.T) {
	square := func(e *env, x *Value) *Value { return e.op(ir.Mul, t1(x), t1(x)) }
	same := func(e *env, x *Value) *Value { return x }
	past := func(k float32) func(e *env, x *Value) *Value {
		return func(e *env, x *Value) *Value { return e.op(ir.Maximum, t1(add(e, x, -k)), f1(0)) }
	}
	whole := func(f func(e *env, x *Value) *Value) func(e *env, x *Value) *Value {
		return func(e *env, x *Value) *Value { return total(e, ir.Sum, f(e, x)) }
	}
	for name, reads := range map[string][]func(e *env, x *Value) *Value{
		"sum, maximum":           {whole(same), func(e *env, x *Value) *Value { return total(e, ir.Max, x) }},
		"sum of squares, sum":    {whole(square), whole(same)},
		"sum, itself":            {whole(same), same},
		"sums of excesses":       {whole(past(0.5)), whole(past(1)), whole(past(2))},
		"excesses":               {past(0.5), past(1), past(2)},
		"sum of excesses, cheap": {whole(past(0.5)), func(e *env, x *Value) *Value { return cheap(e, x) }},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t)
			e.d.plans.Foresight.Seconds = 0
			for turn := range 5 {
				before := e.d.Stats().Ops
				p := cheap(e, costly(e, e.host(e.place(), ir.Shape{3}, 0, 0, 0), 20))
				for _, read := range reads {
					if _, err := e.read(read(e, p)); err != nil {
						t.Fatal(err)
					}
				}
				if n := e.d.Stats().Ops - before; n >= 40 {
					t.Errorf("turn %d: %d ops ran: the 20 costly ones ran twice", turn, n)
				}
			}
		})
	}
}

// A program that reads each costly result once writes it a few times unasked, and then no more. One
// that reads some of them again writes those.
func TestWritingUnaskedEnds(t *testing.T) {
	for _, again := range []bool{false, true} {
		e := open(t)
		e.d.plans.Foresight.Seconds = 0
		var written [8]int64
		for turn := range written {
			x := e.host(e.place(), ir.Shape{1000}, make([]float32, 1000)...)
			p, q := costly(e, x, 20), costly(e, mul(e, x, 2), 20)
			sum := e.op(ir.Add, t1(total(e, ir.Sum, p)), t1(total(e, ir.Sum, q)))
			e.want(sum, 0)
			written[turn] = e.d.Stats().LiveBytes / 4000 // x, and the results
			if again {
				e.want(total(e, ir.Max, q), 0)
			}
			e.d.mem.Reclaim(true)
		}
		t.Log(written)
		last := written[len(written)-1]
		if want := map[bool]int64{false: 1, true: 2}[again]; written[0] != 3 || last != want {
			t.Errorf("again %v: arrays in memory after the first read: %v, want 3 and then %d", again, written, want)
		}
	}
}

// Results that take little time or much memory are not written unasked.
func TestNotWrittenUnasked(t *testing.T) {
	for what, change := range map[string]func(e *env){
		"little time": func(e *env) {},
		"much memory": func(e *env) { e.d.plans.Foresight.Seconds, e.d.Opts.PinnedLimit = 0, 1000 },
	} {
		e := open(t)
		change(e)
		x := e.host(e.place(), ir.Shape{100}, make([]float32, 100)...)
		e.want(total(e, ir.Sum, costly(e, x, 20)), 0)
		if live := e.d.Stats().LiveBytes; live > 420 {
			t.Errorf("%s: %d bytes live", what, live)
		}
	}
}

// If memory does not suffice for what is written unasked, the segment runs without it.
func TestUnaskedGivesWay(t *testing.T) {
	const n = 1000
	e := open(t, func(o *device.Options) { o.MemoryLimit = 100 * 4 * n })
	e.d.plans.Foresight.Seconds = 0
	zeros := make([]float32, n)
	x := e.host(e.place(), ir.Shape{n}, zeros...)
	full := e.host(e.place(), ir.Shape{98*n + n/2}, make([]float32, 98*n+n/2)...)
	p := costly(e, x, 20)
	e.want(total(e, ir.Sum, p), 0)
	Release(full)
	e.want(p, zeros...)
}
