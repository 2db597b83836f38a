package stream

// Carrier makes the values of what a tape computes where the caller's handles are to find
// more than a value there: see MarkFollowed. A nil Carrier makes plain ones.
type Carrier struct {
	New func() *Value       // a zero Value, in the caller's own room
	Has func(v *Value) bool // a value with MarkFollowed is one of them
}

func (c *Carrier) value() *Value {
	if c == nil {
		return new(Value)
	}
	return c.New()
}

// has reports that a value carries what it is to.
func (c *Carrier) has(v *Value) bool {
	if followed := v.marks&MarkFollowed != 0; c == nil || !followed {
		return c == nil && !followed
	}
	return c.Has(v)
}

// Carry has result i of all runs be a value of c.
func (t *Tape) Carry(i int, c *Carrier) { t.outs[i].as = c }

// Carrier of result i, nil for plain values.
func (t *Tape) Carrier(i int) *Carrier { return t.outs[i].as }

// Sets are the handles from outside that were set so far, as far as the tape can do so again.
func (t *Taping) Sets() (hs []*Value) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, n := range t.handles {
		if !n.inside {
			hs = append(hs, n.h)
		}
	}
	return hs
}

// Carry has what such a handle is set to be a value of c.
func (t *Taping) Carry(h *Value, c *Carrier) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, n := range t.handles {
		if n.h == h {
			n.as = c
		}
	}
}
