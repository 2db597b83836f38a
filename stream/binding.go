package stream

import (
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/exec"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Binding is a tape whose arguments, results and what it sets stay in the same memory from
// run to run, so that a run has nothing to find out but whether all is as it was: see quick.
// Where it is not, it is fixed anew. Where that cannot be, as when somebody looks at the
// old value of what is set, the tape is played, and results are copied to where they belong.
//
// A run writes over what handles name. Nobody who got hold of a value before sees that:
// while a stream has Bindings its values are looked at under its lock only, and what
// somebody reads is left to that reader: later runs store the result in other memory.
type Binding struct {
	s       *Stream
	t       *Tape
	in, out []*Value // handles

	slowly sync.Mutex // held by runs that are not quick
	rest   int        // of those, until it is tried again to fix it
	last   int

	// Under the stream's lock.
	closed  bool
	fixed   *exec.Fixed      // nil: what runs is the tape
	call    runtime.Sequence // of fixed, where that is one call
	watch   []watched
	readers []reader
	room    []byte
	runs    int64 // that were not counted yet
	quicks  int   // runs since it was fixed
	onces   int64 // runs that are in none of these yet
	calls   int64 // of these, as one call
}

// watched is a handle of a Binding, and what it named when that was fixed: a run is as quick
// as it is found that nothing has changed.
type watched struct {
	h, v  *Value
	named *Value        // what h.names was
	blk   *memory.Block // that is written, else nil
}

// reader is the hold of a Binding on memory.
type reader struct {
	blk   *memory.Block
	known bool
}

// turns are the runs that a call of Run makes before others may have the stream.
const turns = 64

// longestUnfixed is how many runs go by at most before it is tried again to fix a Binding.
const longestUnfixed = 64

// quick reports that the next run is like the last one. The lock is held. Traces and checks
// are the device's for good: with them nothing is ever fixed.
func (b *Binding) quick() bool {
	s := b.s
	if b.fixed == nil || s.q.Len() > 0 || s.taping != nil || !s.lane.Idle() || s.usable() != nil {
		return false
	}
	for i := range b.watch { // no calls: this is a third of a run
		w := &b.watch[i]
		n := w.v.more.Load()
		switch {
		case w.h.names.Load() != w.named:
			return false
		case w.blk == nil:
			if n == unnamed {
				return false
			}
		case n != 0 || !w.blk.Alone(s.lane):
			return false
		}
	}
	return true
}

// Once makes a run where that is quick and one call: the way of nearly all.
func (b *Binding) Once() (done bool) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.call == nil || !b.quick() || !b.call.Repeat(1) {
		return false
	}
	b.onces++
	return true
}

// Run runs it so many times, and returns when that is done, or at the first run that failed.
func (b *Binding) Run(n int) error {
	for n > 0 {
		done, err := b.turn(n)
		if err != nil {
			b.s.dev.Rethrow() // a hook's panic waits until the lock was given up
			return err
		}
		if done == 0 {
			if err := b.slow(); err != nil {
				return err
			}
			done = 1
		}
		n -= done
	}
	return nil
}

// turn makes some runs if they are quick ones.
func (b *Binding) turn(n int) (done int, err error) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if !b.quick() {
		return 0, nil
	}
	if done = 1; b.call != nil {
		done = min(n, turns)
		b.calls += int64(done)
	}
	b.runs += int64(done)
	b.quicks += done
	if err = b.fixed.Run(done); err != nil {
		return done, b.failed(err)
	}
	b.call = b.fixed.OneCall()
	return done, nil
}

// failed takes up what a run left that failed. The error is nil where all came to be
// computed. The lock is held.
func (b *Binding) failed(err error) error {
	b.fixed.Failed(err)
	var first error
	for i := range b.watch {
		if w := &b.watch[i]; w.blk != nil && first == nil {
			if e := w.blk.Fault.Load(); e != nil {
				operror.See(e)
				first = e
			}
		}
	}
	b.unfix()
	return first
}

// slow makes a run that is not quick.
func (b *Binding) slow() error {
	b.slowly.Lock()
	defer b.slowly.Unlock()
	if err := b.ready(); err != nil {
		return err
	}
	if err := b.lay(); err != nil {
		return err
	}
	if b.rest > 0 {
		b.rest--
		return b.through()
	}
	few := b.fewRuns()
	ok, err := b.fix()
	if err != nil {
		return err
	}
	if ok && few {
		b.rest, b.last = b.last, min(2*b.last+1, longestUnfixed)
	}
	if ok {
		if done, err := b.turn(1); done > 0 || err != nil {
			return err
		}
	}
	b.rest, b.last = b.last, min(2*b.last+1, longestUnfixed)
	return b.through()
}

// worthFixing is how many runs pay for finding out what a run is. Where there were fewer since
// the last time, as where a program sets an argument before every run, the tape is played the
// next times, more and more often.
const worthFixing = 8

// fewRuns reports that it was fixed to little avail.
func (b *Binding) fewRuns() bool {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.tally()
	few := b.quicks < worthFixing
	if !few {
		b.last = 0
	}
	b.quicks = 0
	return few
}

// ready runs what is queued and waits for it.
func (b *Binding) ready() error {
	s := b.s
	s.mu.Lock()
	defer s.unlock()
	if b.closed {
		return runtime.ErrClosed
	}
	if err := s.usable(); err != nil {
		return err
	}
	s.spoil()
	s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
	s.due = s.lane.Next
	return nil
}

// through plays the tape, and copies its results.
func (b *Binding) through() error {
	out := make([]*Value, len(b.out))
	for i := range out {
		out[i] = new(Value)
	}
	done, err := b.t.Play(b.s, b.in, nil, out, true)
	if !done {
		return b.unfit()
	}
	if err != nil {
		b.carry(err)
		return err
	}
	defer func() {
		for _, v := range out {
			v.release(&dropped)
		}
	}()
	for i, v := range out {
		if err := b.copy(i, v); err != nil {
			return err
		}
	}
	b.s.mu.Lock()
	b.runs++
	b.s.mu.Unlock()
	return nil
}

// copy makes result i what v is.
func (b *Binding) copy(i int, v *Value) error {
	st, err := computed(v, nil, "run")
	if err != nil {
		return err
	}
	defer st.Release()
	s := b.s
	s.mu.Lock()
	defer s.unlock()
	s.lane.Last().Wait() // jobs take no stream's lock
	to, err := b.place(b.out[i], tapeOut{dt: st.dt, form: st.form, as: b.t.outs[i].as})
	if err != nil || st.form.Shape.Elems() == 0 {
		return err
	}
	l, err := s.dev.mem.CopyLaunch(to.mem.Load().Block, st.dt, st.form.Shape, st.Storage)
	if err != nil {
		return err
	}
	return s.dev.Launch([]runtime.Launch{l}, nil, device.Submitter{Stream: s.num})
}

// carry has the results carry an error.
func (b *Binding) carry(err error) {
	e, ok := err.(*operror.Error)
	if !ok {
		e = newOpError("run", err, nil)
	}
	b.s.mu.Lock()
	defer b.s.unlock()
	for i, h := range b.out {
		if v, err := b.place(h, b.t.outs[i]); err == nil {
			v.mem.Load().Fault.Store(e)
		}
	}
}

// unfit says why the tape does not fit its arguments, or what it sets, any more.
func (b *Binding) unfit() error {
	for i, h := range b.in {
		if err := b.t.inputs[i].differs(h); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	for i := range b.t.states {
		if err := b.t.states[i].differs(b.t.states[i].h); err != nil {
			return fmt.Errorf("a tensor that the recording sets: %w", err)
		}
	}
	return fmt.Errorf("%w: an argument lies otherwise than when it was bound", ir.ErrUnsupported)
}

// differs says what a value has that the tape was not recorded with.
func (x *tapeInput) differs(h *Value) error {
	if err := h.Cause(); err != nil {
		return err
	}
	v := h.now()
	switch {
	case v.home.dev.Closed.Load():
		return runtime.ErrClosed
	case v.dt != x.dt:
		return fmt.Errorf("%w: it is %v, and was %v", ir.ErrDType, v.dt, x.dt)
	case !x.form.Equal(v.form):
		return fmt.Errorf("%w: it is %v, and was %v", ir.ErrShape, v.form.Shape, x.form.Shape)
	}
	return nil
}

// Write writes the elements of argument i, which are of that dtype: the handle has them
// from then on, and whoever got hold of it before keeps what it was.
func (b *Binding) Write(i int, dt ir.DType, data []byte) error {
	s, x := b.s, &b.t.inputs[i]
	switch {
	case dt != x.dt:
		return fmt.Errorf("%w: argument %d is %v, not %v", ir.ErrDType, i, x.dt, dt)
	case len(data) != x.form.Shape.Elems()*dt.Size():
		return fmt.Errorf("%w: argument %d is %v, not of %d elements", ir.ErrShape, i, x.form.Shape, len(data)/dt.Size())
	}
	if !b.in[i].released() {
		s.bring(b.in[i], nil)
	}
	s.mu.Lock()
	defer s.unlock()
	if b.closed {
		return runtime.ErrClosed
	}
	if err := s.usable(); err != nil {
		return err
	}
	if b.in[i].released() {
		return b.in[i].now().ext.releasedErr()
	}
	if !s.lane.Idle() {
		s.lane.Last().Wait()
	}
	v, err := b.place(b.in[i], tapeOut{dt: x.dt, form: x.form})
	if err != nil || len(data) == 0 {
		return err
	}
	b.room = append(b.room[:0], data...) // so that data need not be on the heap
	return s.dev.Driver.Write(v.mem.Load().Buf, dt, 0, b.room)
}

// released says that a handle was given up.
func (h *Value) released() bool { return h.now().more.Load() == unnamed }

// Close ends it. What its handles name stays.
func (b *Binding) Close() {
	b.s.mu.Lock()
	was := b.closed
	if b.closed = true; !was {
		b.unfix()
		b.count()
	}
	b.s.mu.Unlock()
	if !was {
		b.s.bindings.Add(-1)
		b.t.Release()
	}
}

// tally notes what Once did. The lock is held.
func (b *Binding) tally() {
	b.runs, b.calls, b.quicks, b.onces = b.runs+b.onces, b.calls+b.onces, b.quicks+int(b.onces), 0
}

// count adds the runs to the device's counters. The lock is held.
func (b *Binding) count() {
	b.tally()
	c := &b.s.dev.Counts
	c.BoundRuns.Add(b.runs)
	c.BoundCalls.Add(b.calls)
	b.runs, b.calls = 0, 0
	if b.fixed != nil {
		b.fixed.Count()
	}
}

// bindings are those of a device whose runs are to be counted.
type bindings struct {
	mu   sync.Mutex
	list []weak.Pointer[Binding]
}

func (x *bindings) add(b *Binding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = append(slices.DeleteFunc(x.list, func(p weak.Pointer[Binding]) bool { return p.Value() == nil }), weak.Make(b))
}

// count has all add their runs to the counters, but those that are at it.
func (x *bindings) count() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.list {
		if b := p.Value(); b != nil && b.s.mu.TryLock() {
			b.count()
			b.s.mu.Unlock()
		}
	}
}

// settle returns when no run of a Binding is under way that began before the device was
// closed.
func (d *Device) settleBindings() {
	for _, s := range d.open.list() {
		if s.bindings.Load() > 0 {
			s.mu.Lock()
			s.mu.Unlock() //nolint:staticcheck // whoever takes it next sees that the device is closed
		}
	}
}

// value is a new one of the stream in memory, of which a reader becomes the value's.
func (s *Stream) value(as *Carrier, dt ir.DType, form *queue.Form, st *memory.Storage) *Value {
	v := as.value()
	v.home, v.dt, v.form, v.state, v.stray = s, dt, form, stReady, true
	v.mem.Store(st)
	st.Count(memory.Handles)
	st.Watch()
	return v
}
