package millrace

import (
	"github.com/millrace-go/millrace/stream"
)

// Scope releases, at its end, the tensors that descend from it: the tensors made on it, as in
// FromSliceOn(sc, …) or t.To(sc), and every result of an op with an operand of the scope. It does
// not release other tensors, even if the same goroutine made them meanwhile. A result with
// operands of several scopes belongs to the innermost one. Making a tensor or a scope on a scope
// that has ended is ErrClosed.
type Scope struct {
	sc *stream.Scope
}

// made reports that a stream opened sc, so that sc is neither nil nor the zero Scope.
func (sc *Scope) made() bool { return sc != nil && sc.sc != nil }

// Scope calls f with a new scope and ends the scope when f returns or panics. It returns f's
// error. To put a scope inside another one, call Scope on the outer one.
//
// The memory of tensors in a scope is reused at once, and kernels need not write results that
// only the scope could request. A step of a loop inside a Scope therefore runs without the
// collector's help.
func (s *Stream) Scope(f func(sc *Scope) error) error {
	if !s.made() {
		return errNilDevice
	}
	return (&Scope{s.s.OpenScope()}).run(f)
}

// Scope is [Stream.Scope] for a scope inside this one, on the same stream. Results with operands
// of both scopes belong to the inner one. A tensor that the inner scope keeps moves to the outer
// one.
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

// Keep moves t from the scope to the enclosing one, or out of all scopes if there is none, and
// returns t. A tensor of another scope stays in that scope.
func (sc *Scope) Keep(t *Tensor) *Tensor {
	if sc.made() && t.made() {
		sc.sc.Keep(&t.v)
	}
	return t
}

// Stream returns the stream that the scope was opened on.
func (sc *Scope) Stream() *Stream {
	if !sc.made() {
		return nil
	}
	return &Stream{sc.sc.Home()}
}
