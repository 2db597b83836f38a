package stream

import (
	"math"
	"sync/atomic"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

type state uint8

const (
	stNone     state = iota // zero Value: never recorded
	stPending               // result of an op still in its stream's queue
	stVirtual               // ran, was not written: see recipe
	stReady                 // in memory
	stFailed                // carries an error
	stReleased              // Release was called, or its scope ended
	stShares                // Set gave its value to another handle as well, which holds it
)

// Value is the engine's side of a tensor handle. The public Tensor embeds one,
// so that recording an op costs one allocation. A Value must not be copied
// after it was passed to this package. Its fields belong to its home stream's
// lock, except home, dt and form, which change only when Set gives a handle a
// value of another stream or type, and born and out, which say whose it is. The
// home is looked up without a lock, so who then holds its lock looks again: it
// changes under the locks of both streams.
type Value struct {
	home  *Stream
	born  *Scope        // the scope it was made in, nil for none: never changes
	form  *queue.Form   // nil: unknown
	mem   *storage      // stReady
	ext   *ext          // recipe, error, release line or whom it shares with: what few values have
	gen   uint64        // queue generation in which id is valid
	id    int32         // relative id in the home stream's queue
	out   atomic.Uint32 // how many scopes out of born it has moved since
	dt    ir.DType
	state state
}

// Shape of the value; empty where it carries an error that left it unknown.
func (v *Value) Shape() ir.Shape {
	if v.form == nil {
		return nil
	}
	return v.form.Shape
}

// DType of the value; ir.Invalid where it carries an error that left it unknown.
func (v *Value) DType() ir.DType { return v.dt }

// Home is the stream the value belongs to.
func (v *Value) Home() *Stream { return v.home }

// Err is the error that v carries, without running anything: nil where v is
// usable as far as anybody knows.
func (v *Value) Err() error {
	err := v.Cause()
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

// Cause is the same as an op finds it: for use after Release no *OpError yet,
// since that names the op. Nobody is told by it.
func (v *Value) Cause() error {
	for {
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
		if err != errElsewhere {
			return err
		}
	}
}

// owner is the scope whose end will release v, nil for none.
func (v *Value) owner() *Scope {
	sc := v.born
	if n := v.out.Load(); n > 0 {
		sc = sc.outwards(n)
	}
	return sc
}

// ownedByNone is the count of a value that is out of all scopes.
const ownedByNone = math.MaxUint32

// leave moves v from a scope that owns it to the next one out, or out of all
// scopes. It reports false where v was released meanwhile.
func (v *Value) leave(sc *Scope) bool {
	for {
		n := v.out.Load()
		if v.born.outwards(n) != sc {
			return false
		}
		if v.out.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
