package millrace

import (
	"github.com/millrace-go/millrace/stream"
)

// Scope releases at its end the tensors that descend from it: those made on
// it, as in FromSliceOn(sc, …) or t.To(sc), and every result of an op with an
// operand of the scope. Time and goroutine do not matter, and nothing else is
// touched. With operands of several scopes the result belongs to the innermost.
// Making a tensor or a scope on one that has ended is ErrClosed.
type Scope struct {
	sc *stream.Scope
}

// made reports that a stream opened sc: it is not nil and not the zero Scope.
func (sc *Scope) made() bool { return sc != nil && sc.sc != nil }

// Scope calls f with a new scope and ends it when f returns or panics. It
// returns f's error. To put a scope inside another, call the other's Scope.
//
// Memory of tensors in a scope is reused at once, and a kernel need not write
// what only the scope could have asked for: a step of a loop inside a Scope
// runs without the collector's help.
func (s *Stream) Scope(f func(sc *Scope) error) error {
	if !s.made() {
		return errNilDevice
	}
	return (&Scope{s.s.OpenScope()}).run(f)
}

// Scope is [Stream.Scope] for a scope inside this one, on the same stream:
// results with operands of both belong to the inner one, and what it keeps
// moves to this one.
func (sc *Scope) Scope(f func(sc *Scope) error) error {
	if !sc.made() {
		return errNilDevice
	}
	if err := sc.sc.Ended(); err != nil {
		return failure("scope", err)
	}
	return (&Scope{sc.sc.Inner()}).run(f)
}

func (sc *Scope) run(f func(sc *Scope) error) error {
	defer sc.sc.Close()
	if f == nil {
		return errNilFunc
	}
	return f(sc)
}

// Keep moves t out of the scope, to the one around it if there is one, and
// returns t. A tensor of another scope stays where it is.
func (sc *Scope) Keep(t *Tensor) *Tensor {
	if sc.made() && t.made() {
		sc.sc.Keep(&t.v)
	}
	return t
}

// Stream that the scope was opened on.
func (sc *Scope) Stream() *Stream {
	if !sc.made() {
		return nil
	}
	return &Stream{sc.sc.Home()}
}
