package stream

// Carrier makes the values that a tape computes, if the caller stores more than a value with
// them: see MarkFollowed. A nil Carrier makes plain values.
type Carrier struct {
	New func() *Value       // makes a zero Value within a larger struct of the caller
	Has func(v *Value) bool // reports whether a value with MarkFollowed came from this Carrier
}

func (c *Carrier) value() *Value {
	if c == nil {
		return new(Value)
	}
	return c.New()
}

// has reports that v is a value such as the Carrier makes.
func (c *Carrier) has(v *Value) bool {
	if followed := v.marks&MarkFollowed != 0; c == nil || !followed {
		return c == nil && !followed
	}
	return c.Has(v)
}

// Carry makes c produce the values of result i in all runs.
func (t *Tape) Carry(i int, c *Carrier) { t.outs[i].as = c }

// Carrier returns the Carrier of result i, nil for plain values.
func (t *Tape) Carrier(i int) *Carrier { return t.outs[i].as }

// Sets returns the outside handles that were set so far, except handles that the recorded
// function made or got as arguments.
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

// Carry makes c produce the values to which a run sets the handle h.
func (t *Taping) Carry(h *Value, c *Carrier) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, n := range t.handles {
		if n.h == h {
			n.as = c
		}
	}
}
