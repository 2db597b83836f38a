package millrace

import (
	"github.com/millrace-go/millrace/stream"
)

// Scope releases at its end the tensors that descend from it: those made on
// it, as in FromSliceOn(sc, …) or t.To(sc), and every result of an op with an
// operand of the scope. Time and goroutine do not matter, and nothing else is
// touched. With operands of several scopes the result belongs to the innermost.
type Scope struct {
	sc *stream.Scope
}

// Scope calls f with a new scope and ends it when f returns or panics. It
// returns f's error. Scopes nest: one opened while another is open on the same
// stream lies inside it.
//
// Memory of tensors in a scope is reused at once, and a kernel need not write
// what only the scope could have asked for: a step of a loop inside a Scope
// runs without the collector's help.
func (s *Stream) Scope(f func(sc *Scope) error) error {
	if s == nil {
		return errNilDevice
	}
	sc := &Scope{s.s.OpenScope()}
	defer sc.sc.Close()
	return f(sc)
}

// Keep moves t out of the scope, to the one around it if there is one, and
// returns t. A tensor of another scope stays where it is.
func (sc *Scope) Keep(t *Tensor) *Tensor {
	if sc != nil && t.made() {
		sc.sc.Keep(&t.v)
	}
	return t
}

// Scope is [Stream.Scope] on the scope's stream: a scope inside this one.
func (sc *Scope) Scope(f func(sc *Scope) error) error { return sc.Stream().Scope(f) }

// Stream that the scope was opened on.
func (sc *Scope) Stream() *Stream {
	if sc == nil {
		return nil
	}
	return &Stream{sc.sc.Home()}
}
