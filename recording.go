package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/operror"
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
// It is not differentiated: gradients are taken in the function. A gradient by a tensor
// that package autodiff watches is an error where the loss depends on it by way of a
// Recording's result, or of what it sets; arguments are not to be watched.
//
// Where it reads a value, runs another Recording, reads a tensor that it sets and whose
// value another handle has as well, or another goroutine sets one of the device
// meanwhile, nothing is kept, and it is called by the next Run again. Views of what is
// set are no such handles: they stay what they are.
//
// With [Axes] it takes arguments of any size along those that have names, and calls the
// function for the first size only: what it does at others is found out by a few trials,
// at the second size. In a trial the function is called with tensors that have no
// values. It must do the same ops whatever the sizes, each size in them and each scalar
// must be a sum of products of the axes' and of whole numbers, or 1 over one, and tensors
// that it makes of data in Go must be the same ones each time. Else, as where an axis or
// a size in it comes to be 0 or 1 for the first time, it is called. [Stats] counts its
// calls (Recordings), sizes for which it was not called (Resizes), and Trials.
//
// From the third run on, if the plans are found by then, all is one list of launches, in
// memory that the Recording keeps from run to run for what lies between arguments and
// results ([Stats] counts such runs as Replays, the memory in LiveBytes). What it sets is
// written over its old value where the plan allows that and nobody else has it. The
// memory is given back when the Recording is released or dropped, when other work lacks
// it, and where it is of no use any more, as when a better plan was found; it is kept
// for each of up to four streams that run the Recording at a time.
//
// A Recording is safe for concurrent use, on several streams of one device. It
// keeps the memory of tensors from elsewhere until it is released or dropped.
type Recording struct {
	f     func(sc *Scope, in []*Tensor) ([]*Tensor, error)
	calls atomic.Int32 // of f that are under way
	tape  atomic.Pointer[stream.Tape]
	sized *variable // in place of tape where axes have names, else nil
}

// NewRecording makes a Recording of f, which is given a scope and the arguments,
// which the scope owns. What it returns, arguments and other tensors included,
// outlives the scope. Where there are axes, they are those of each argument in turn.
func NewRecording(f func(sc *Scope, in []*Tensor) ([]*Tensor, error), axes ...Axes) *Recording {
	return &Recording{f: f, sized: newVariable(axes)}
}

// RunOptions say how a [Recording] runs once. The zero value is what [Recording.Run] does.
type RunOptions struct {
	// On is the stream that runs it, or a device, whose default stream that is. Without it
	// that is where an op on the arguments would run: the first stream of theirs that is not
	// the default one of their device, else that one; without arguments the default device's.
	On Place

	// Give marks arguments that are released, so that their memory may become a result's. It
	// is empty or has an element for each. Arguments are released only once all have been
	// found good.
	Give []bool

	// NoWait has the run return at once: the results, and what the function sets, are
	// computed while the program goes on, in the order of the stream, at most eight runs ahead
	// of it; who reads one waits for that run. An error of an argument is returned; what is
	// found when the run's turn has come, as an index out of range, is carried by the tensors
	// that depend on it, and told by [Stream.Err] and [Stream.Sync]. Where nothing that was
	// recorded fits, as in the first run, the function is called, and the run may wait for it.
	NoWait bool
}

// Run computes the results for these arguments and waits for them, or until ctx is done,
// which may be nil. No other op may be recorded on the stream meanwhile. Each result is a
// handle of its own, on the stream and in no scope. An error of f, of an argument or of an op
// is returned in place of all results.
//
// Where ctx is done before it begins nothing is run. Where it is done later, the run goes on,
// and sets what it sets; a function that is being called is waited for. A ctx that can be
// done costs a run a goroutine.
//
// Where a run fails once it has begun, as by an index out of range, each tensor that it
// sets has its new value if that does not depend on what failed, and else carries the
// error: the old value may have been written over. One that carries an error is to be
// set anew, as from what was saved.
func (r *Recording) Run(ctx context.Context, in ...*Tensor) ([]*Tensor, error) {
	return r.RunWith(ctx, RunOptions{}, in...)
}

// RunWith is [Recording.Run] on a stream of the caller's choice, with arguments that are given
// up, or without waiting.
func (r *Recording) RunWith(ctx context.Context, opt RunOptions, in ...*Tensor) ([]*Tensor, error) {
	if ctx != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s, err := r.check(opt.On, in, opt.Give)
	if err != nil {
		return nil, err
	}
	run := &running{Recording: r, ctx: ctx, s: s, in: in, give: opt.Give, wait: !opt.NoWait}
	if r.sized != nil {
		return run.sized()
	}
	if tape := r.tape.Load(); tape != nil {
		if out, played, err := run.play(tape); played {
			return out, err
		}
	}
	out, tape, err := r.record(s, in, opt.Give, false)
	if err == nil {
		r.keep(tape)
		out, err = run.finish(out)
	}
	return out, err
}

// running is one run.
type running struct {
	*Recording
	ctx  context.Context
	s    *stream.Stream
	in   []*Tensor
	give []bool
	wait bool
}

// sized is a run with axes that have names.
func (r *running) sized() ([]*Tensor, error) {
	v := r.Recording.sized
	sizes, err := v.sizes(r.in)
	if err != nil {
		return nil, failure("recording", err)
	}
	tape := v.find(r.Recording, sizes)
	if tape != nil {
		if out, played, err := r.play(tape); played {
			return out, err
		}
	}
	if tape != nil || v.undecided(sizes) {
		r.s.Device().Settle()
	}
	out, made, err := r.record(r.s, r.in, r.give, false)
	if err == nil {
		v.recorded(sizes, made, tape != nil)
		out, err = r.finish(out)
	}
	return out, err
}

// Release gives up what was recorded, and with it the memory of tensors from
// elsewhere. Runs that are under way are not disturbed; a later one calls the
// function again.
func (r *Recording) Release() {
	switch {
	case r == nil:
	case r.sized != nil:
		r.sized.release()
	default:
		r.keep(nil)
	}
}

// keep replaces the tape.
func (r *Recording) keep(tape *stream.Tape) {
	if old := r.tape.Swap(tape); old != nil {
		old.Release()
	}
}

var errRunScope = errors.New("a Recording runs in no scope: give a device or a stream")

// check finds what cannot be run, and the stream to run on.
func (r *Recording) check(on Place, in []*Tensor, give []bool) (*stream.Stream, error) {
	switch {
	case r == nil || r.f == nil:
		return nil, failure("recording", errNilFunc)
	case len(give) != 0 && len(give) != len(in):
		return nil, failure("recording", fmt.Errorf("%w: %d arguments, %d of them marked or not", ErrShape, len(in), len(give)))
	}
	for _, t := range in {
		if err := t.Err(); err != nil {
			return nil, err
		}
	}
	if followed(in...) {
		return nil, failure("recording", errFollowed, in...)
	}
	if on == nil && len(in) == 0 {
		on = anywhere{}
	}
	if on != nil {
		p, err := on.place()
		if err == nil && p.Scope != nil {
			err = errRunScope
		}
		if err != nil {
			return nil, failure("recording", err)
		}
		return p.S, nil
	}
	var s *stream.Stream
	for _, t := range in {
		home := t.v.Home()
		if s == nil || home.Device() == s.Device() && s == s.Device().Default() {
			s = home
		}
	}
	return s, nil
}

// play runs a tape; done is false where it does not fit.
func (r *running) play(tape *stream.Tape) (out []*Tensor, played bool, err error) {
	if r.wait && r.ctx != nil && r.ctx.Done() != nil {
		return playUntil(r.ctx, tape, r.s, r.in, r.give)
	}
	return playTape(tape, r.s, r.in, r.give, r.wait)
}

// playUntil waits no longer than until ctx is done.
func playUntil(ctx context.Context, tape *stream.Tape, s *stream.Stream, in []*Tensor, give []bool) ([]*Tensor, bool, error) {
	var out []*Tensor // of the goroutine that runs it, until that has ended
	var played bool
	err := s.Device().Within(ctx, func() (err error) {
		out, played, err = playTape(tape, s, in, give, true)
		return err
	})
	if err != nil {
		return nil, true, err
	}
	return out, played, nil
}

// playTape runs a tape; played is false where it does not fit.
func playTape(tape *stream.Tape, s *stream.Stream, in []*Tensor, give []bool, wait bool) (out []*Tensor, played bool, err error) {
	var few [16]*stream.Value
	args := few[:0]
	for _, t := range in {
		args = append(args, &t.v)
	}
	out = make([]*Tensor, tape.Results())
	var fewer [8]*stream.Value
	values := fewer[:0]
	for i := range out {
		out[i] = resultOf(tape, i) // each by itself: one that is kept must not keep the others
		values = append(values, &out[i].v)
	}
	if played, err = tape.Play(s, args, give, values, wait); err != nil {
		done(out...)
		return nil, true, err
	}
	return out, played, nil
}

// mostNested is how deep a function may run the Recording that it is of: by halves of any
// size it is less.
const mostNested = 100

var errNested = fmt.Errorf("the function runs its own Recording, %d times within one another", mostNested)

// records is what the stack calls record.
const records = "github.com/millrace-go/millrace.(*Recording).record"

// record calls the function, on handles of the arguments that belong to a scope. The
// tape is nil where it cannot be run again. With undo what it sets is as it was afterwards.
func (r *Recording) record(s *stream.Stream, in []*Tensor, give []bool, undo bool) (out []*Tensor, tape *stream.Tape, err error) {
	defer r.calls.Add(-1)
	if r.calls.Add(1) > mostNested && operror.Within(records) > mostNested {
		return nil, nil, failure("recording", errNested, in...)
	}
	var taping *stream.Taping
	var sealed sealed
	defer func() { // also where f panics
		taping.Cancel()
		taping.Undo()
	}()
	at := &Stream{s}
	err = at.Scope(func(sc *Scope) error {
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
		if taping = s.StartTape(values); undo {
			taping.Undoes()
		}
		sealed.begin()
		results, err := r.f(sc, args)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(results, func(t *Tensor) bool { return !t.made() }) {
			return failure("recording", errNilTensor)
		}
		results = sealed.results(results)
		sealed.sets(taping)
		for _, t := range results {
			switch i := slices.Index(results, t); {
			case i < len(out):
				t = out[i]
			case sc.sc.Owns(&t.v) && t.v.Home() == s:
				sc.Keep(t)
			default:
				t = t.To(at)
			}
			out = append(out, t)
		}
		return nil
	})
	if err != nil {
		done(out...)
		return nil, nil, err
	}
	values := make([]*stream.Value, len(out))
	for i, t := range out {
		values[i] = &t.v
		unsign(values[i])
	}
	tape = taping.End(values)
	sealed.carry(tape)
	if tape == nil && undo { // afterwards nobody sees what became of these
		for _, h := range append(values, taping.Sets()...) {
			if err := h.Err(); err != nil {
				done(out...)
				return nil, nil, err
			}
		}
	}
	return out, tape, nil
}

// finish waits for results, if that is asked for, and gives those that are there several
// times handles of their own.
func (r *running) finish(out []*Tensor) ([]*Tensor, error) {
	for _, t := range out {
		err := t.Err()
		if r.wait {
			err = t.EvalContext(r.ctx)
		}
		if err != nil {
			done(out...)
			return nil, err
		}
	}
	for i, t := range out {
		if slices.Index(out, t) < i {
			out[i] = t.To(&Stream{r.s})
		}
	}
	return out, nil
}
