package stream

import (
	"context"
	"errors"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/ir"
)

// A hook's panic passes through the program's call, and leaves the engine in the same state as a
// normal return of the hook.
func TestHookPanic(t *testing.T) {
	armed := ""
	fire := func(name string) {
		if armed == name {
			armed = ""
			panic(name)
		}
	}
	e := open(t, func(o *device.Options) {
		o.Trace = &device.Trace{
			Flush:   func(device.FlushEvent) { fire("flush") },
			Explore: func(device.ExploreEvent) { fire("explore") },
			Error:   func(error) { fire("error") },
		}
	})
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	bad := e.host(e.place(), ir.Shape{3}, 1, 2, 3)
	for _, c := range []struct {
		name string
		call func()
	}{
		{"flush", func() { e.read(mul(e, x, 3)) }},
		{"explore", func() { e.read(add(e, mul(e, x, 3), 4)) }},
		{"error", func() { e.op(ir.Add, t1(x), t1(bad)) }},
		{"error", func() { Set(new(Value), e.op(ir.Add, t1(x), t1(bad))) }},
		{"flush", func() { e.d.Sync(context.Background()) }},
		{"flush", func() { // the scope's end releases all of its tensors nevertheless
			sc := e.d.Default().OpenScope()
			y := new(Value)
			To(y, Place{S: e.d.Default(), Scope: sc}, x)
			for range 300 {
				y = mul(e, y, 1)
			}
			armed = "flush"
			sc.Close()
		}},
	} {
		func() {
			defer func() {
				if r := recover(); r != c.name {
					t.Errorf("%s: recovered %v", c.name, r)
				}
			}()
			pending := mul(e, x, 7)
			armed = c.name
			c.call()
			_ = pending
		}()
		armed = ""
		e.want(add(e, x, 1), 2, 3)
	}
	if fallbacks := e.d.Stats().Fallbacks; fallbacks != 0 {
		t.Errorf("%d fallbacks", fallbacks)
	}
}

// A device's Sync and Err cover all its streams.
func TestSyncOfAllStreams(t *testing.T) {
	e := open(t)
	a, b := e.d.NewStream(), e.d.NewStream()
	var last []*Value
	for _, s := range []*Stream{e.d.Default(), a, b} {
		last = append(last, mul(e, e.host(Place{S: s}, ir.Shape{2}, 1, 2), 3))
	}
	before := e.d.Stats().Segments
	if err := e.d.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := e.d.Stats().Segments - before; n != 3 {
		t.Errorf("%d segments ran", n)
	}
	for _, v := range last {
		e.want(v, 3, 6)
	}
	wrong := func(v *Value) error {
		bad := e.op(ir.Add, t1(v), t1(e.host(Place{S: v.Home()}, ir.Shape{3}, 1, 2, 3)))
		return bad.ext.err
	}
	first, second, third := wrong(last[1]), wrong(last[2]), wrong(last[1])
	if err := e.d.Err(); err != first {
		t.Errorf("first %v, want %v", err, first)
	}
	if err := b.Err(); err != second {
		t.Errorf("stream %v, want %v", err, second)
	}
	if err := e.d.Sync(context.Background()); err != third {
		t.Errorf("third %v, want %v", err, third)
	}
	for _, err := range []error{e.d.Err(), a.Err(), b.Err(), e.d.Default().Err()} {
		if err != nil {
			t.Errorf("told twice: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.d.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The list of streams for Sync does not keep unreachable streams alive.
func TestStreamsAreForgotten(t *testing.T) {
	e := open(t)
	const many = 10000
	for range many {
		e.want(mul(e, e.host(Place{S: e.d.NewStream()}, ir.Shape{1}, 2), 3), 6)
	}
	e.d.mem.Reclaim(true)
	e.d.NewStream()
	if n := len(e.d.open.list()); n > many/10 {
		t.Errorf("%d streams are live", n)
	}
}

// The engine stops searching for the best plans of a program that never repeats, whatever streams
// it uses. A plan that is used again shows that searches pay.
func TestUnpaidExplorations(t *testing.T) {
	e := open(t)
	chain := func(length int) {
		y := e.host(Place{S: e.d.NewStream()}, ir.Shape{1}, 1)
		for range length {
			y = mul(e, y, 1)
		}
		e.want(y, 1)
	}
	expect := func(when string, want int32) {
		t.Helper()
		if got := e.d.plans.Unpaid.Load(); got != want {
			t.Errorf("%s: %d explorations for nothing, want %d", when, got, want)
		}
	}
	for n := range planstore.GreedyAfter {
		chain(n + 1)
	}
	expect("new programs", planstore.GreedyAfter)
	chain(3)
	expect("one came again", 0)
	chain(planstore.GreedyAfter + 1)
	chain(3)
	expect("an old acquaintance", 1)
}
