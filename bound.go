package millrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/stream"
)

// BoundRecording is a [Recording] whose inputs and results have a fixed place in memory, for
// programs that run a small computation very often. A run plans nothing, allocates nothing and
// waits for no other work, except for other ranks in a collective of package dist.
//
// Its inputs are the tensors that it was bound with. [SetInput] or [Tensor.Set] writes new
// values into them before a run, such as a learning rate, a counter of random numbers or indices.
// The results are the same handles after every run, and name what the last run computed. Tensors
// that the recorded function sets also keep their place: a run overwrites their old values. No
// other tensor changes by that. If other handles, views or ops that have not run still need an
// old value, the run stores the new value elsewhere.
//
// If the launches are few and elementwise, with some hundred elements at most, and the device
// makes machine code, a run is one function that holds everything in registers. Otherwise a run
// is the list of launches that the Recording would run. [Stats] counts both in BoundRuns, and the
// former also in BoundCalls.
//
// A BoundRecording is safe for concurrent use. Its runs follow one another, in order with other
// work on the stream.
type BoundRecording struct {
	b       *stream.Binding
	in, out []*Tensor
}

// BindOptions say how a [Recording] is bound. The zero value gives [Recording.Bind].
type BindOptions struct {
	On Place // the place that runs it, as in [RunOptions]

	// Out are tensors that receive the results. They must have the results' dtypes and shapes,
	// and lose their old values. If there are none, or one is nil, Bind makes them on the stream
	// and in no scope.
	Out []*Tensor
}

// Bind gives the inputs, in, and the results a fixed place in memory.
//
// If no recording fits the inputs, Bind calls the function with the inputs' present values.
// Neither that call nor Bind itself has any visible effect: tensors that the function sets keep
// their old values, and results have no values before the first run. Collectives in the function
// take place in that call, so all ranks must bind at the same point. Bind returns an error that a
// result, or a tensor that the function sets, carries. A function that cannot be run again is
// ErrUnsupported, for example one that reads a value.
//
// The device must not be closed before the BoundRecording is.
func (r *Recording) Bind(in ...*Tensor) (*BoundRecording, error) {
	return r.BindWith(BindOptions{}, in...)
}

// BindWith is [Recording.Bind] on a stream of the caller's choice, or with the results in tensors
// of the caller's. Another number of tensors than results is ErrShape, and so is a tensor of
// another shape than its result; another dtype is ErrDType. A tensor that is on another device, is
// given twice, or is set by the recording, is ErrUnsupported. Other errors are those of Bind.
func (r *Recording) BindWith(opt BindOptions, in ...*Tensor) (*BoundRecording, error) {
	const op = "bind"
	s, err := r.check(opt.On, in, nil)
	if err != nil {
		return nil, bindFailure(op, err, in)
	}
	out := opt.Out
	s.Device().SubmitAll() // tensors that the function sets get values
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
			return nil, bindFailure(op, shapeErr("%d tensors were given for %d results", len(out), tape.Results()), in)
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
			return nil, failure(op, fmt.Errorf("%w: the recording does not fit its own inputs", ErrUnsupported), in...)
		}
	}
}

// bindFailure returns an error with the caller's line; err itself if it has a line already.
func bindFailure(op string, err error, ts []*Tensor) error {
	var e *OpError
	if errors.As(err, &e) {
		return err
	}
	return failure(op, err, ts...)
}

// tapeFor returns the tape for such inputs, nil if there is none.
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

// rehearse calls the function and keeps its tape.
func (r *Recording) rehearse(s *stream.Stream, in []*Tensor) (*stream.Tape, error) {
	out, tape, err := r.record(s, in, nil, true)
	if err != nil {
		return nil, err
	}
	done(out...)
	if tape == nil {
		return nil, fmt.Errorf("%w: the function's ops cannot run again as they are: it reads a value, runs another Recording, "+
			"sets a tensor that shares its value with another handle, or uses a tensor that another goroutine sets meanwhile", ErrUnsupported)
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

var errNotBound = errors.New("the BoundRecording is nil, or Bind did not make it")

// Run computes the results and the tensors that the function sets, and returns when that is done.
// An error names the caller's line. An error that only the running finds, such as an index out of
// range, names the line that recorded the op. Results and set tensors that depend on the failed
// op then carry the error; the others have their new values.
func (b *BoundRecording) Run() error {
	if b.made() && b.b.Once() {
		return nil
	}
	return b.RunN(1)
}

// RunN calls Run n times, and stops at the first error.
func (b *BoundRecording) RunN(n int) error {
	if !b.made() {
		return failure("run", errNotBound)
	}
	if err := b.b.Run(n); err != nil {
		return bindFailure("run", err, b.in)
	}
	return nil
}

// Results are the tensors with the results of the last run: those given to Bind, or made by it.
// Their shapes and dtypes never change. Before the first run they have no values. A result that
// depends on an op that failed carries the error. The caller must not change the slice. It is nil
// for a nil BoundRecording.
func (b *BoundRecording) Results() []*Tensor {
	if !b.made() {
		return nil
	}
	return b.out
}

// Close frees the memory that runs need. Inputs and results keep their values. It returns nil, and
// closing twice is harmless.
func (b *BoundRecording) Close() error {
	if b.made() {
		b.b.Close()
	}
	return nil
}

// SetInput writes new elements, in row-major order, into input i of a bound recording. The
// input's tensor has them from then on. Elements of another dtype are ErrDType, another number
// of them is ErrShape.
func SetInput[T Element](b *BoundRecording, i int, elements ...T) error {
	const op = "setinput"
	switch {
	case !b.made():
		return failure(op, errNotBound)
	case i < 0 || i >= len(b.in):
		return failure(op, fmt.Errorf("%w: input %d does not exist, the recording has %d", ErrShape, i, len(b.in)))
	}
	if err := b.b.Write(i, dtypeOf[T](), bytesOf(elements)); err != nil {
		return bindFailure(op, err, b.in[i:i+1])
	}
	return nil
}
