package stream

import (
	"errors"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
)

// meanwhile opens a device. The function given to set is called once, when another stream's queue
// runs while an op is being recorded.
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

// An operand is found on another stream, and its handle is set to a value of another shape before
// the op is recorded. The op uses the value that was found.
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

// A caller looked up the value of a handle and finds another value under the lock. It gets an
// error, and nothing is done.
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

// The handle of an operand is set to a value of another stream while the op is on its way to the
// earlier stream.
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

// A handle gives up its earlier value, in whatever state that is. Ops recorded with the earlier
// value still read it.
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

// A released handle no longer belongs to its scope. A value to which it is set afterwards
// outlives the scope, however many tensors the scope has had.
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

// After Set both handles name the value, in whatever state it is, until each gives it up, by Set
// or Release, in any order.
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
				Set(c, w) // it names w already
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

// The memory of a value with two handles is not overwritten when one handle is given up. It is
// overwritten when both are.
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

// The fault of a value reaches all its handles and is reported once.
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
