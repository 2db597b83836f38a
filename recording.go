package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/stream"
)

// Recording is a computation that a program runs again and again with other inputs. The first
// Run calls a function and records its ops. Later ones run the recorded ops without calling the
// function, which saves most of the cost of a program of many small ops. It is meant for code
// that has a graph anyway, such as another library's. A loop inside a [Stream.Scope] needs no
// Recording, and may do something else in each turn.
//
// The function must depend only on its inputs' dtypes and shapes. Other tensors and Go values
// that it uses are those of the first run. But it may [Tensor.Set] tensors from elsewhere, as a
// training step does with weights: each Run computes with their present values, and sets them. If
// inputs, or tensors that are set, come with other dtypes, shapes or layouts, the function is
// called again, and the new recording replaces the old one.
//
// A Recording is not differentiated: take gradients inside the function. If a loss depends on a
// watched tensor of package autodiff by way of a Recording's result, or of a tensor that it sets,
// the gradient is an error. Inputs must not be watched.
//
// In some cases nothing is kept, and the next Run calls the function again: the function reads a
// value, runs another Recording, or reads a tensor that it sets while another handle has that
// tensor's value; or another goroutine sets a tensor of the device meanwhile. Views of a tensor
// that is set are no such handles: they keep their values.
//
// With [Axes] it takes inputs of any size along the named axes, and calls the function only
// for the first size. For other sizes it runs a few trials, when the second size comes, to learn
// how the recording depends on sizes. In a trial the function is called with tensors that have no
// values. The function must do the same ops for all sizes. Each size in them, and each scalar,
// must be a sum of products of the axes' sizes and whole numbers, or 1 divided by such a sum.
// Tensors that it makes from data in Go must be the same each time. Otherwise the function is
// called; so it is when an axis, or a size in the function, is 0 or 1 for the first time. [Stats]
// counts calls of the function (Recordings), sizes for which it was not called (Resizes), and
// Trials.
//
// From the third run on, if the plans are found by then, a run is one list of launches. The
// Recording then keeps the memory for intermediate results from run to run ([Stats] counts such
// runs as Replays, and this memory in LiveBytes). Tensors that it sets are written over their old
// values, if the plan allows that and no other handle has the old value. The memory is freed when
// the Recording is released or dropped, when other work lacks memory, and when it is of no more
// use, for example because a better plan was found. It is kept separately for up to four streams
// that run the Recording at the same time.
//
// A Recording is safe for concurrent use, on several streams of one device. It keeps the memory
// of tensors from elsewhere until it is released or dropped.
type Recording struct {
	f     func(sc *Scope, in []*Tensor) ([]*Tensor, error)
	calls atomic.Int32 // of f that are in progress
	tape  atomic.Pointer[stream.Tape]
	sized *variable // in place of tape if axes have names, else nil
}

// NewRecording makes a Recording of f, which gets a scope and the inputs, which the scope
// owns. The tensors that f returns, also inputs and others, outlive the scope. axes, if given,
// are those of each input in turn.
func NewRecording(f func(sc *Scope, in []*Tensor) ([]*Tensor, error), axes ...Axes) *Recording {
	return &Recording{f: f, sized: newVariable(axes)}
}

// RunOptions say how a [Recording] runs once. The zero value gives [Recording.Run].
type RunOptions struct {
	// On is the stream that runs it, or a device, which means its default stream. If On is nil,
	// it is where an op on the inputs would run: the first of their streams that is not the
	// default one, else the default stream of their device, or without inputs of the default
	// device.
	On Place

	// Give marks the inputs to release, so that results may reuse their memory. It is empty or
	// has an element for each input. Inputs are released only after all of them were found
	// valid.
	Give []bool

	// NoWait makes the run return at once. The results, and the tensors that the function sets,
	// are computed while the program continues, in the stream's order, at most eight runs ahead
	// of it. Reading one of these tensors waits for its run. The run returns an input's error.
	// An error that only the computation finds, such as an index out of range, is carried by the
	// tensors that depend on it, and reported by [Stream.Err] and [Stream.Sync]. If no recording
	// fits, as in the first run, the function is called, and the run may wait for it.
	NoWait bool
}

// Run computes the results for these inputs, and waits for them or until ctx is done; ctx may
// be nil. No other op may be recorded on the stream meanwhile. Each result is a new handle, on
// the stream and in no scope. If f, an input or an op has an error, Run returns it instead of
// all results.
//
// If ctx is done before the run begins, nothing runs. If it is done later, the run continues, and
// sets the tensors that it sets; Run waits for a function that is being called. A ctx that can be
// done costs a goroutine per run.
//
// If a run fails after it began, for example by an index out of range, each tensor that it sets
// has its new value if that does not depend on the failed op. Otherwise the tensor carries the
// error, because its old value may be overwritten. Set such a tensor anew, for example from a
// saved value.
func (r *Recording) Run(ctx context.Context, in ...*Tensor) ([]*Tensor, error) {
	return r.RunWith(ctx, RunOptions{}, in...)
}

// RunWith is [Recording.Run] with options: on a stream of the caller's choice, with inputs that are
// released, or without waiting. Results and errors are those of Run. With NoWait, an error that
// only running finds is carried by the results.
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

// sized is a run of a Recording whose axes have names.
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

// Release drops the recording, and with it the memory of tensors from elsewhere. Runs in progress
// continue; a later run calls the function again.
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

var errRunScope = errors.New("a Recording cannot run in a scope: give a device or a stream")

// check returns the stream to run on, or an error if these inputs cannot run.
func (r *Recording) check(on Place, in []*Tensor, give []bool) (*stream.Stream, error) {
	switch {
	case r == nil || r.f == nil:
		return nil, failure("recording", errNilFunc)
	case len(give) != 0 && len(give) != len(in):
		return nil, failure("recording", fmt.Errorf("%w: %d inputs were given, and marks for %d of them", ErrShape, len(in), len(give)))
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

// play runs a tape; played is false if the tape does not fit.
func (r *running) play(tape *stream.Tape) (out []*Tensor, played bool, err error) {
	if r.wait && r.ctx != nil && r.ctx.Done() != nil {
		return playUntil(r.ctx, tape, r.s, r.in, r.give)
	}
	return playTape(tape, r.s, r.in, r.give, r.wait)
}

// playUntil runs a tape, and stops waiting when ctx is done.
func playUntil(ctx context.Context, tape *stream.Tape, s *stream.Stream, in []*Tensor, give []bool) ([]*Tensor, bool, error) {
	var out []*Tensor // belongs to the goroutine that runs the tape, until that ends
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

// playTape runs a tape; played is false if the tape does not fit.
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
		out[i] = resultOf(tape, i) // allocated one by one: a result that is kept must not keep the others alive
		values = append(values, &out[i].v)
	}
	if played, err = tape.Play(s, args, give, values, wait); err != nil {
		done(out...)
		return nil, true, err
	}
	return out, played, nil
}

// mostNested is how deep a function may run its own Recording. A function that halves its problem
// stays below this depth for any size.
const mostNested = 100

var errNested = fmt.Errorf("the function runs its own Recording, %d levels deep", mostNested)

// records is record's name in a stack trace.
const records = "github.com/millrace-go/millrace.(*Recording).record"

// record calls the function with handles of the inputs that belong to a scope. The tape is nil
// if it cannot be run again. With undo, the tensors that the function sets have their old values
// afterwards.
func (r *Recording) record(s *stream.Stream, in []*Tensor, give []bool, undo bool) (out []*Tensor, tape *stream.Tape, err error) {
	defer r.calls.Add(-1)
	if r.calls.Add(1) > mostNested && operror.Within(records) > mostNested {
		return nil, nil, failure("recording", errNested, in...)
	}
	var taping *stream.Taping
	var sealed sealed
	defer func() { // also if f panics
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
	if tape == nil && undo { // Undo hides these errors, so return them now
		for _, h := range append(values, taping.Sets()...) {
			if err := h.Err(); err != nil {
				done(out...)
				return nil, nil, err
			}
		}
	}
	return out, tape, nil
}

// finish waits for the results if the run waits, and gives a result that is in the list several
// times separate handles.
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

// A Recording is not differentiated: the ops that autodiff followed in its function end with it.
// But its results, and the tensors that it sets, may depend on watched tensors, and their
// gradient must not silently be zero. In every run they therefore carry a node that makes the
// gradient an error.

// sealed has the nodes of one call of a Recording's function.
type sealed struct {
	before   uint64
	carriers []*stream.Carrier // of results, nil for those that are not followed
}

// begin is called before the function.
func (x *sealed) begin() { x.before = adhook.Count.Load() }

// results returns the function's results. A result that the function computed from watched
// tensors is replaced by one that carries a node of the Recording.
func (x *sealed) results(ts []*Tensor) []*Tensor {
	n := nodeOf(ts)
	if n == nil {
		return ts
	}
	nodes, made := n.Seal(x.before, ts)
	out := slices.Clone(ts)
	x.carriers = make([]*stream.Carrier, len(ts))
	for i, t := range ts {
		if nodes[i] == nil {
			continue
		}
		x.carriers[i] = carrierOf(nodes[i])
		if k := slices.Index(ts, t); k < i {
			out[i] = out[k]
		} else if made[i] {
			p := plainly(t)
			out[i] = p.Reshape(p.shape()...)
			done(p)
			out[i].carry(nodes[i])
		}
	}
	return out
}

// sets does the same for handles from outside that the function set to results.
func (x *sealed) sets(taping *stream.Taping) {
	for _, h := range taping.Sets() {
		unsign(h)
		if h.Marks()&stream.MarkLeaf != 0 {
			continue
		}
		one := sealed{before: x.before}
		t := tensorOf(h)
		if r := one.results([]*Tensor{t})[0]; len(one.carriers) > 0 {
			if r != t {
				unsign(&r.v)
				t.Set(r)
				done(r)
			}
			taping.Carry(h, one.carriers[0])
		}
	}
}

// carry makes the results of later runs carry the nodes too.
func (x *sealed) carry(tape *stream.Tape) {
	if tape == nil {
		return
	}
	for i, c := range x.carriers {
		if c != nil {
			tape.Carry(i, c)
		}
	}
}

// carrierOf returns a Carrier, which makes values that carry a node.
func carrierOf(n node) *stream.Carrier {
	return &stream.Carrier{
		New: func() *stream.Value {
			r := newRoomy()
			r.carry(n)
			return &r.v
		},
		Has: func(v *stream.Value) bool { return tensorOf(v).extra().node == n },
	}
}

// resultOf returns a new tensor for a result of a tape.
func resultOf(tape *stream.Tape, i int) *Tensor {
	if c := tape.Carrier(i); c != nil {
		return tensorOf(c.New())
	}
	return new(Tensor)
}

// inGraph reports whether gradients pass through t: it is followed, and is not a result of a
// Recording.
func inGraph(t *Tensor) bool {
	n := t.node()
	return n != nil && !n.Sealed()
}
