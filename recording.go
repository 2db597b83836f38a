package millrace

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/stream"
)

// Recording is a computation that is the same each time but for its arguments:
// the first Run calls a function, which records it, and later ones run what was
// recorded without calling it. For a program of many small ops that saves most
// of what they cost. It is meant for code that has a graph anyway, such as
// another library's; a loop inside a [Stream.Scope] needs none, and is free to
// do something else in each turn.
//
// The function must depend on nothing but its arguments' dtypes and shapes:
// tensors from elsewhere that it uses are those of the first run, and so is
// whatever it found out in Go. But it may [Tensor.Set] tensors from elsewhere, as a
// training step does with weights: each Run computes with what they are then, and
// sets them. Where arguments, or tensors that are set, of other dtypes, shapes or
// layouts come, the function is called again, and what it records then replaces
// what was there.
//
// Where it reads a value, runs another Recording, sets a tensor whose old value
// another handle has as well, or another goroutine sets one of the device meanwhile,
// nothing is kept, and it is called by the next Run again.
//
// A Recording is safe for concurrent use, on several streams of one device. It
// keeps the memory of tensors from elsewhere until it is released or dropped.
type Recording struct {
	f    func(sc *Scope, in []*Tensor) ([]*Tensor, error)
	tape atomic.Pointer[stream.Tape]
}

// NewRecording makes a Recording of f, which is given a scope and the arguments,
// which the scope owns. What it returns, arguments and other tensors included,
// outlives the scope.
func NewRecording(f func(sc *Scope, in []*Tensor) ([]*Tensor, error)) *Recording {
	return &Recording{f: f}
}

// Run computes the results for these arguments and waits for them. No other op
// may be recorded on the stream meanwhile. Each result is a handle of its own,
// on the stream and in no scope. Arguments marked in give, which is empty or as
// long as in, are released: their memory may become a result's. An error of f,
// of an argument or of an op is returned in place of all results; arguments are
// released only once they have been found good.
func (r *Recording) Run(s *Stream, in []*Tensor, give []bool) ([]*Tensor, error) {
	if err := r.check(s, in, give); err != nil {
		return nil, err
	}
	if tape := r.tape.Load(); tape != nil {
		if out, played, err := play(tape, s, in, give); played {
			return out, err
		}
	}
	return r.record(s, in, give)
}

// Release gives up what was recorded, and with it the memory of tensors from
// elsewhere. Runs that are under way are not disturbed; a later one calls the
// function again.
func (r *Recording) Release() {
	if r != nil {
		r.keep(nil)
	}
}

// keep replaces the tape.
func (r *Recording) keep(tape *stream.Tape) {
	if old := r.tape.Swap(tape); old != nil {
		old.Release()
	}
}

func (r *Recording) check(s *Stream, in []*Tensor, give []bool) error {
	switch {
	case !s.made():
		return errNilDevice
	case r == nil || r.f == nil:
		return errNilFunc
	case len(give) != 0 && len(give) != len(in):
		return fmt.Errorf("%w: %d arguments, %d of them marked or not", ErrShape, len(in), len(give))
	}
	for _, t := range in {
		if err := t.Err(); err != nil {
			return err
		}
	}
	return nil
}

// play runs a tape; done is false where it does not fit.
func play(tape *stream.Tape, s *Stream, in []*Tensor, give []bool) (out []*Tensor, played bool, err error) {
	var few [16]*stream.Value
	args := few[:0]
	for _, t := range in {
		args = append(args, &t.v)
	}
	out = make([]*Tensor, tape.Results())
	var fewer [8]*stream.Value
	values := fewer[:0]
	for i := range out {
		out[i] = new(Tensor) // each by itself: one that is kept must not keep the others
		values = append(values, &out[i].v)
	}
	if played, err = tape.Play(s.s, args, give, values); err != nil {
		done(out...)
		return nil, true, err
	}
	return out, played, nil
}

// record calls the function, on handles of the arguments that belong to a scope.
func (r *Recording) record(s *Stream, in []*Tensor, give []bool) (out []*Tensor, err error) {
	var taping *stream.Taping
	defer func() { taping.Cancel() }() // also where f panics
	err = s.Scope(func(sc *Scope) error {
		args := make([]*Tensor, len(in))
		values := make([]*stream.Value, len(in))
		for i, t := range in {
			args[i] = t.To(sc)
			if err := args[i].Err(); err != nil {
				return err
			}
			values[i] = &args[i].v
		}
		for i, g := range give {
			if g {
				stream.Give(&in[i].v)
			}
		}
		taping = s.s.StartTape(values)
		results, err := r.f(sc, args)
		if err != nil {
			return err
		}
		for _, t := range results {
			if !t.made() {
				return failure("recording", errNilTensor)
			}
			switch i := slices.Index(results, t); {
			case i < len(out):
				t = out[i]
			case sc.sc.Owns(&t.v) && t.v.Home() == s.s:
				sc.Keep(t)
			default:
				t = t.To(s)
			}
			out = append(out, t)
		}
		return nil
	})
	if err != nil {
		done(out...)
		return nil, err
	}
	values := make([]*stream.Value, len(out))
	for i, t := range out {
		values[i] = &t.v
	}
	r.keep(taping.End(values))
	return finish(s, out)
}

// finish waits for results, and gives those that are there several times handles
// of their own.
func finish(s *Stream, out []*Tensor) ([]*Tensor, error) {
	for _, t := range out {
		if err := t.Eval(); err != nil {
			done(out...)
			return nil, err
		}
	}
	for i, t := range out {
		if slices.Index(out, t) < i {
			out[i] = t.To(s)
		}
	}
	return out, nil
}
