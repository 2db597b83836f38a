package millrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/stream"
)

// BoundRecording is a [Recording] whose arguments and results stay where they are in
// memory, for programs that run a small computation very often: a run finds out nothing,
// allocates nothing and waits for nobody.
//
// Its arguments are the tensors that it was bound with. What differs between runs, as a
// learning rate, a counter of random numbers or indices, is written into them by
// [SetArgument], or by a [Tensor.Set]. Results are the same handles all the time, which
// name what the last run computed, and so are tensors that the recorded function sets:
// their old values are written over. That is not seen by anybody: what was computed from
// them, other handles of them, views, and what is still to be computed keep the values
// that they were made from, in which case the next values lie somewhere else.
//
// Where the launches are few, elementwise and of some hundred elements at most, and the
// device makes machine code, a run is one function that has all of it in registers. Else
// it is the list of launches that the Recording would run. [Stats] tells: BoundRuns, and
// BoundCalls for the former.
//
// It is safe for concurrent use; runs are one after another, in the order of the stream
// with other work there.
type BoundRecording struct {
	b       *stream.Binding
	in, out []*Tensor
}

// BindOptions say how a [Recording] is bound. The zero value is what [Recording.Bind] does.
type BindOptions struct {
	On Place // what runs it, as in [RunOptions]

	// Out are tensors that the results are written to, of their dtypes and shapes, whose
	// values are lost. Where there are none, or one is nil, they are made, on the stream and
	// in no scope.
	Out []*Tensor
}

// Bind fixes arguments, in, and results in memory.
//
// Where nothing that was recorded fits, the function is called, with the arguments as they
// are. Neither this nor anything else that Bind does is seen: what the function sets is as
// it was before, and results have no values before the first run. An error that a result
// carries, or what is set, is returned. What cannot be run again, as where the function reads
// a value, is ErrUnsupported.
//
// The device must not be closed before the BoundRecording is.
func (r *Recording) Bind(in ...*Tensor) (*BoundRecording, error) {
	return r.BindWith(BindOptions{}, in...)
}

// BindWith is [Recording.Bind] on a stream of the caller's choice, or with results in tensors
// of his.
func (r *Recording) BindWith(opt BindOptions, in ...*Tensor) (*BoundRecording, error) {
	const op = "bind"
	s, err := r.check(opt.On, in, nil)
	if err != nil {
		return nil, bindFailure(op, err, in)
	}
	out := opt.Out
	s.Device().RunAll() // so that what it sets has values
	s.Device().Settle()
	x := &BoundRecording{in: slices.Clone(in)}
	var args []*stream.Value
	for _, t := range in {
		if err := t.Eval(); err != nil {
			return nil, err
		}
		args = append(args, &t.v)
	}
	if err := s.Lay(args); err != nil {
		return nil, bindFailure(op, err, in)
	}
	tape, err := r.tapeFor(in)
	if err != nil {
		return nil, bindFailure(op, err, in)
	}
	for try := 0; ; try++ {
		if tape == nil || try > 0 {
			if tape, err = r.rehearse(s, in); err != nil {
				return nil, bindFailure(op, err, in)
			}
		}
		if fits, err := tape.LayStates(s); err != nil {
			return nil, bindFailure(op, err, in)
		} else if !fits && try < 2 {
			continue
		}
		if len(out) != 0 && len(out) != tape.Results() {
			return nil, bindFailure(op, shapeErr("%d tensors for %d results", len(out), tape.Results()), in)
		}
		results := make([]*stream.Value, tape.Results())
		x.out = make([]*Tensor, tape.Results())
		for i := range results {
			if x.out[i] = resultOf(tape, i); len(out) > 0 && out[i] != nil {
				x.out[i] = out[i]
				if err := out[i].Err(); err != nil {
					return nil, err
				}
			}
			results[i] = &x.out[i].v
		}
		if slices.ContainsFunc(x.out, inGraph) {
			return nil, failure(op, errFollowed, x.out...)
		}
		if x.b, err = tape.Bind(s, args, results); err != nil {
			return nil, bindFailure(op, err, in)
		}
		if x.b != nil {
			return x, nil
		}
		if try > 1 {
			return nil, failure(op, fmt.Errorf("%w: what was recorded does not fit its own arguments", ErrUnsupported), in...)
		}
	}
}

// bindFailure is an error with the caller's line, unless it has one.
func bindFailure(op string, err error, ts []*Tensor) error {
	var e *OpError
	if errors.As(err, &e) {
		return err
	}
	return failure(op, err, ts...)
}

// tapeFor is what was recorded for such arguments, nil where nothing was.
func (r *Recording) tapeFor(in []*Tensor) (*stream.Tape, error) {
	if r.sized == nil {
		return r.tape.Load(), nil
	}
	sizes, err := r.sized.sizes(in)
	if err != nil {
		return nil, err
	}
	return r.sized.find(r, sizes), nil
}

// rehearse calls the function and keeps what it recorded.
func (r *Recording) rehearse(s *stream.Stream, in []*Tensor) (*stream.Tape, error) {
	out, tape, err := r.record(s, in, nil, true)
	if err != nil {
		return nil, err
	}
	done(out...)
	if tape == nil {
		return nil, fmt.Errorf("%w: what the function does cannot be run again: it reads a value, runs another Recording, "+
			"sets a tensor whose value another handle has as well, or uses what another goroutine sets meanwhile", ErrUnsupported)
	}
	if r.sized == nil {
		r.keep(tape)
		return tape, nil
	}
	sizes, err := r.sized.sizes(in)
	if err == nil {
		r.sized.recorded(sizes, tape, true)
	}
	return tape, err
}

func (b *BoundRecording) made() bool { return b != nil && b.b != nil }

var errNotBound = errors.New("nil BoundRecording, or one that Bind did not make")

// Run computes the results and what the function sets, and returns when that is done. An
// error names the line of the caller, or for what is found while it runs, as an index out
// of range, that where the op was recorded: then results, and what is set, have their new
// values if those do not depend on what failed, and else carry the error.
func (b *BoundRecording) Run() error {
	if b.made() && b.b.Once() {
		return nil
	}
	return b.RunN(1)
}

// RunN is n times Run, as long as there is no error.
func (b *BoundRecording) RunN(n int) error {
	if !b.made() {
		return failure("run", errNotBound)
	}
	if err := b.b.Run(n); err != nil {
		return bindFailure("run", err, b.in)
	}
	return nil
}

// Results are the tensors that have the results of the last run: those given to Bind, or
// made by it. The slice is not to be changed.
func (b *BoundRecording) Results() []*Tensor {
	if !b.made() {
		return nil
	}
	return b.out
}

// Close gives up the memory that runs need. Arguments and results stay what they are.
func (b *BoundRecording) Close() error {
	if b.made() {
		b.b.Close()
	}
	return nil
}

// SetArgument gives argument i of a bound recording other elements, in row-major order: the
// tensor that is the argument has them from then on. Other dtypes are ErrDType, other
// numbers of elements ErrShape.
func SetArgument[T Element](b *BoundRecording, i int, elements ...T) error {
	const op = "setargument"
	switch {
	case !b.made():
		return failure(op, errNotBound)
	case i < 0 || i >= len(b.in):
		return failure(op, fmt.Errorf("%w: argument %d of %d", ErrShape, i, len(b.in)))
	}
	if err := b.b.Write(i, dtypeOf[T](), bytesOf(elements)); err != nil {
		return bindFailure(op, err, b.in[i:i+1])
	}
	return nil
}
