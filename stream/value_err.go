package stream

// Err is the error a value carries, without running anything.
func (v *Value) Err() error {
	s := v.home
	if s == nil {
		if v.state == stFailed {
			return v.ext.err
		}
		return nil
	}
	s.mu.Lock()
	_, err := s.readable(v)
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	e, ok := err.(*OpError)
	if !ok {
		e = newOpError("err", err, []Arg{{V: v}})
	}
	e.seen.Store(true)
	return e
}
