package stream

import (
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// takes records an op if it goes the short way, and reports whether it did.
func (e *env) takes(v *Value, op ir.Op, args ...Arg) bool {
	s := e.d.Default()
	s.mu.Lock()
	short := s.again(v, op, args)
	s.mu.Unlock()
	if !short {
		Record(v, Place{}, op, ir.Invalid, nil, nil, args)
	}
	return short
}

// An op that repeats goes the short way, with its new scalars and operands. An op that differs in
// anything on which a plan depends does not.
func TestShortWay(t *testing.T) {
	e := open(t)
	x, y := e.host(e.place(), ir.Shape{2}, 1, 2), e.host(e.place(), ir.Shape{2}, 3, 5)
	row := e.host(e.place(), ir.Shape{1}, 1)
	first := func(k float32) *Value { // makes x and y known to the queue, on the short way from the second call on
		return add(e, e.op(ir.Sub, t1(x), t1(y)), k)
	}
	e.want(e.op(ir.Mul, t1(first(1)), t1(x)), -1, -4)
	for _, c := range []struct {
		name  string
		op    ir.Op
		args  func(a *Value) []Arg
		short bool
		want  []float32
	}{
		{"the same", ir.Mul, func(a *Value) []Arg { return []Arg{t1(a), t1(x)} }, true, []float32{0, -2}},
		{"another op", ir.Add, func(a *Value) []Arg { return []Arg{t1(a), t1(x)} }, false, []float32{1, 1}},
		{"another tensor", ir.Mul, func(a *Value) []Arg { return []Arg{t1(a), t1(y)} }, false, []float32{0, -5}},
		{"the other order", ir.Mul, func(a *Value) []Arg { return []Arg{t1(x), t1(a)} }, false, []float32{0, -2}},
		{"a scalar", ir.Mul, func(a *Value) []Arg { return []Arg{t1(a), f1(3)} }, false, []float32{0, -3}},
		{"fewer operands", ir.Neg, func(a *Value) []Arg { return []Arg{t1(a)} }, false, []float32{0, 1}},
		{"a row", ir.Mul, func(a *Value) []Arg { return []Arg{t1(a), t1(row)} }, false, []float32{0, -1}},
		{"still the same", ir.Mul, func(a *Value) []Arg { return []Arg{t1(a), t1(x)} }, false, []float32{0, -2}},
		{"again the same", ir.Mul, func(a *Value) []Arg { return []Arg{t1(a), t1(x)} }, true, []float32{0, -2}},
	} {
		z := new(Value)
		if short := e.takes(z, c.op, c.args(first(2))...); short != c.short {
			t.Errorf("%s: short %v", c.name, short)
		}
		e.want(z, c.want...)
	}
}

// An operand that is new to the queue and occurs twice in an op is one tensor, even if two
// tensors were there before.
func TestShortWayTakesATensorTwice(t *testing.T) {
	e := open(t)
	x, y := e.host(e.place(), ir.Shape{2}, 1, 2), e.host(e.place(), ir.Shape{2}, 3, 5)
	for range 2 {
		e.want(e.op(ir.Mul, t1(x), t1(y)), 3, 10)
		e.want(e.op(ir.Mul, t1(x), t1(x)), 1, 4)
	}
	if n := e.d.Stats().Explorations; n != 2 {
		t.Errorf("%d explorations", n)
	}
}

// The short way also refuses unusable values and closed devices.
func TestShortWayRefuses(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	e.want(mul(e, add(e, x, 1), 2), 4, 6)
	y := add(e, x, 1)
	Release(y)
	z := new(Value)
	if e.takes(z, ir.Mul, t1(y), f1(2)) || z.Err() == nil {
		t.Errorf("a released operand: %v", z.Err())
	}
	e.want(mul(e, add(e, x, 1), 2), 4, 6)
	y = add(e, x, 1)
	e.d.Close()
	if e.takes(new(Value), ir.Mul, t1(y), f1(2)) {
		t.Error("a closed device")
	}
}

// holds recomputes the stream's weight, which is what the queue holds.
func (s *Stream) holds() (bytes int64) {
	for i := range s.q.Slots {
		switch sl := &s.q.Slots[i]; {
		case sl.H.st != nil:
			bytes += sl.H.st.Bytes
		case sl.Uses == 0:
			bytes += sl.Weight
		}
	}
	return bytes
}

// The weight counts every op, including ops recorded again behind a cut and ops of a recipe.
func TestEveryOpIsWeighed(t *testing.T) {
	e := open(t, func(o *device.Options) { o.QueueCap = 12 })
	s := e.d.Default()
	cuts, replays := e.d.Stats().Segments, e.d.Stats().Recomputes
	x := e.host(e.place(), ir.Shape{4}, 1, 2, 3, 4)
	var old *Value
	for i := range 100 {
		y := mul(e, x, 0.5)
		if i%9 == 3 && old != nil {
			y = e.op(ir.Add, t1(y), t1(old)) // it was computed in an earlier segment and not written
		}
		if i%5 == 0 {
			old = y
		}
		x = add(e, y, 1)
		if want := s.holds(); s.weight != want {
			t.Fatalf("turn %d: weight %d, but the queue holds %d bytes", i, s.weight, want)
		}
	}
	after := e.d.Stats()
	if after.Segments-cuts < 5 || after.Recomputes == replays {
		t.Errorf("%d segments, %d recomputes: nothing was tested", after.Segments-cuts, after.Recomputes-replays)
	}
}

// Sizes that occur in turn are laid out once each, and then take the hot path.
func TestSizesInTurn(t *testing.T) {
	e := open(t)
	s := e.d.Default()
	sizes := [...]int{5, 3, 4}
	var before device.Stats
	for turn := range 8 {
		if turn == 3 {
			before = e.d.Stats()
		}
		for i, n := range sizes {
			x := e.host(e.place(), ir.Shape{n}, make([]float32, n)...)
			y := mul(e, add(e, x, float32(turn)), 2)
			s.mu.Lock()
			ent, geo := s.hot(segment.End{Reason: segment.ReasonRead, ID: y.id})
			s.mu.Unlock()
			if turn > 1 && (ent == nil || !geo.Shapes[0].Equal(ir.Shape{n})) {
				t.Errorf("turn %d, size %d: not the hot way", turn, i)
			}
			want := make([]float32, n)
			for k := range want {
				want[k] = 2 * float32(turn)
			}
			e.want(y, want...)
		}
	}
	if now := e.d.Stats(); now.Layouts != before.Layouts || now.Layouts < int64(len(sizes)) || now.Explorations != before.Explorations {
		t.Errorf("%d layouts and %d explorations, before %d and %d", now.Layouts, now.Explorations, before.Layouts, before.Explorations)
	}
}
