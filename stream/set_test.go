package stream

import (
	"errors"
	"testing"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/operror"
)

// meanwhile opens a device on which what was set is called, once, when a queue of
// another stream has run in the middle of recording an op.
func meanwhile(t *testing.T) (e *env, set func(f func())) {
	var f func()
	e = open(t, func(o *device.Options) {
		o.Trace = &device.Trace{Flush: func(device.FlushEvent) {
			if g := f; g != nil {
				f = nil
				g()
			}
		}}
	})
	return e, func(g func()) { f = g }
}

// An operand that was found on another stream is given another shape before the op
// is recorded: the op takes what was found.
func TestSetOfAnotherShapeMeanwhile(t *testing.T) {
	for _, want := range [][]float32{{0, 5}, {0}} {
		e, set := meanwhile(t)
		n := len(want)
		x := e.host(Place{S: e.d.NewStream()}, ir.Shape{n}, []float32{-7, 9}[:n]...)
		lo := e.host(Place{S: e.d.NewStream()}, ir.Shape{1}, 0)
		hi := add(e, e.host(Place{S: e.d.NewStream()}, ir.Shape{n}, []float32{4, 5}[:n]...), 0)
		set(func() { Set(lo, e.host(Place{S: lo.Home()}, ir.Shape{2}, -3, -2)) })
		e.want(e.op(ir.Clamp, t1(x), t1(lo), t1(hi)), want...)
		e.want(lo, -3, -2)
	}
}

// Who looked up what a handle names and finds something else with the lock held is told
// so and does nothing.
func TestFoundAsAnother(t *testing.T) {
	e := open(t)
	was := e.d.NewStream()
	x := mul(e, e.host(Place{S: e.d.NewStream()}, ir.Shape{2}, 1, 2), 2)
	y := e.host(Place{S: x.Home()}, ir.Shape{3}, 1, 2, 3)
	complete := func(s *Stream, a Arg) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.complete(new(operands), []Arg{a})
	}
	if err := complete(was, t1(x)); err != errMoved {
		t.Errorf("on another stream: %v", err)
	}
	if err := complete(x.Home(), Arg{V: x, Is: y}); err != errNotIt {
		t.Errorf("another value: %v", err)
	}
	if ok, err := ReadAs(x, y, nil); ok || err != errNotIt {
		t.Errorf("reading another value: %v", err)
	}
	dst := new(Value)
	if Apply(dst, ir.Exp, []Arg{{V: x, Is: y}}) || dst.state != stNone {
		t.Error("recorded an op on another value")
	}
	e.want(x, 2, 4)
}

// An operand goes to another stream while the op is on its way to that which it was on.
func TestSetToAnotherStreamMeanwhile(t *testing.T) {
	e, set := meanwhile(t)
	a, b := e.d.NewStream(), e.d.NewStream()
	x := add(e, e.host(Place{S: a}, ir.Shape{2}, 1, 2), 1)
	y := add(e, e.host(Place{S: b}, ir.Shape{2}, 10, 20), 0)
	u := e.host(Place{S: e.d.NewStream()}, ir.Shape{2}, 0, 1)
	for range 5 {
		u = add(e, u, 1)
	}
	set(func() { Set(x, u) })
	e.want(e.op(ir.Add, t1(x), t1(y)), 15, 26)
	e.want(u, 5, 6)
}

// What a handle named before goes with it, whatever state it is in, and who had it
// from the handle keeps it.
func TestSetToAnotherStream(t *testing.T) {
	e := open(t)
	a, b := e.d.NewStream(), e.d.NewStream()
	for name, make := range map[string]func() *Value{
		"ready":   func() *Value { return e.host(Place{S: a}, ir.Shape{2}, 1, 2) },
		"read":    func() *Value { x := e.host(Place{S: a}, ir.Shape{2}, 1, 2); mul(e, x, 2); return x },
		"pending": func() *Value { return mul(e, e.host(Place{S: a}, ir.Shape{2}, 1, 2), 2) },
		"virtual": func() *Value {
			x := mul(e, e.host(Place{S: a}, ir.Shape{2}, 1, 2), 2)
			e.want(add(e, x, 1), 3, 5)
			return x
		},
		"moved": func() *Value {
			x := mul(e, e.host(Place{S: a}, ir.Shape{2}, 1, 2), 2)
			Set(e.host(Place{S: a}, ir.Shape{1}, 0), x)
			return x
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := make()
			y := add(e, x, 1)
			Set(x, mul(e, e.host(Place{S: b}, ir.Shape{3}, 5, 6, 7), 2))
			if x.Home() != b {
				t.Error("the handle stayed where it was")
			}
			e.want(x, 10, 12, 14)
			if name == "ready" || name == "read" {
				e.want(y, 2, 3)
			} else {
				e.want(y, 3, 5)
			}
		})
	}
	waitFor(t, e.d, "after all was dropped", func(s device.Stats) bool { return s.LiveBytes == 0 })
}

// A handle that was released is its scope's no longer: what it is given then is
// there after the scope, however many tensors the scope has seen.
func TestSetOfAReleasedHandle(t *testing.T) {
	for _, n := range []int{0, 100} {
		e := open(t)
		sc := e.d.Default().OpenScope()
		p := Place{S: e.d.Default(), Scope: sc}
		x := e.host(p, ir.Shape{2}, 1, 2)
		Release(x)
		for range n {
			Release(e.host(p, ir.Shape{2}, 1, 2))
		}
		Set(x, e.host(e.place(), ir.Shape{2}, 3, 4))
		sc.Close()
		e.want(x, 3, 4)
	}
}

// After Set both handles have the value, whatever state it is in, until each gives
// it up: by Set or Release, in any order.
func TestSetIsShared(t *testing.T) {
	for name, make := range map[string]func(e *env) *Value{
		"ready":   func(e *env) *Value { return e.host(e.place(), ir.Shape{2}, 2, 4) },
		"read":    func(e *env) *Value { x := e.host(e.place(), ir.Shape{2}, 2, 4); mul(e, x, 2); return x },
		"pending": func(e *env) *Value { return mul(e, e.host(e.place(), ir.Shape{2}, 1, 2), 2) },
		"virtual": func(e *env) *Value {
			x := mul(e, e.host(e.place(), ir.Shape{2}, 1, 2), 2)
			e.want(add(e, x, 1), 3, 5)
			return x
		},
	} {
		for _, stream := range []string{"same stream", "other stream"} {
			t.Run(name+", "+stream, func(t *testing.T) {
				e := open(t)
				home := e.place()
				if stream == "other stream" {
					home.S = e.d.NewStream()
				}
				w := e.host(home, ir.Shape{2}, 0, 0)
				a, c := make(e), new(Value)
				Set(w, a)
				Set(c, a)
				Set(c, w) // as it is already
				Set(w, e.host(home, ir.Shape{2}, 7, 8))
				y := add(e, a, 1)
				e.want(a, 2, 4)
				Release(a)
				e.want(w, 7, 8)
				e.want(c, 2, 4)
				e.want(y, 3, 5)
				if _, err := e.read(a); !errors.Is(err, operror.ErrReleased) {
					t.Errorf("got %v", err)
				}
				Release(y)
				Release(w)
				z := add(e, c, 10)
				Release(c)
				e.want(z, 12, 14)
				Release(z)
				waitFor(t, e.d, "after all was released", func(s device.Stats) bool { return s.LiveBytes == 0 })
			})
		}
	}
}

// What two handles have is not overwritten when one of them gives it up, and is when
// both have.
func TestSharedIsNotOverwritten(t *testing.T) {
	e := open(t)
	for _, both := range []bool{false, true} {
		w, u := new(Value), add(e, e.host(e.place(), ir.Shape{2}, 1, 2), 1)
		Set(w, u)
		if err := Flush(w); err != nil {
			t.Fatal(err)
		}
		before := e.d.Stats().InPlace
		y := mul(e, u, 10)
		Release(u)
		if both {
			Release(w)
		}
		e.want(y, 20, 30)
		if inPlace := e.d.Stats().InPlace > before; inPlace != both {
			t.Errorf("both released: %v, in place: %v", both, inPlace)
		}
		if !both {
			e.want(w, 2, 3)
		}
	}
}

// A value that fails does so for all who have it, once.
func TestSharedFault(t *testing.T) {
	e := open(t)
	defer fault.Reset()
	w, u := new(Value), mul(e, e.host(e.place(), ir.Shape{2}, 1, 2), 2)
	Set(w, u)
	fault.Set(fault.Launch, -1)
	for _, v := range []*Value{w, u} {
		if _, err := e.read(v); err == nil {
			t.Error("no error")
		}
	}
	fault.Reset()
	Release(w)
	Release(w)
	if u.Err() == nil {
		t.Error("the error is gone")
	}
	Set(w, e.host(e.place(), ir.Shape{1}, 5))
	e.want(w, 5)
	if u.Err() == nil {
		t.Error("the error is gone")
	}
}
