package stream

import (
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Binding is a tape whose arguments, results and set handles stay in the same memory from run to
// run. A run then only checks that nothing has changed: see quick. If something has changed, the
// Binding is fixed again. If that is not possible, for example because the program reads the old
// value of a handle that the tape sets, the tape is played and its results are copied to their
// memory.
//
// A run overwrites the memory of values that handles name. Other readers of these values never
// see that. First, the values of a stream with Bindings are read under the stream's lock only.
// Second, memory with another reader is left to that reader, and later runs store the result in
// other memory, which has the present elements until then.
type Binding struct {
	s       *Stream
	t       *Tape
	in, out []*Value // handles

	slowly sync.Mutex // held by runs that are not quick
	rest   int        // number of such runs until the next try to fix the Binding
	last   int

	// The stream's lock guards the fields from here on.
	closed  bool
	fixed   *exec.Fixed      // nil: a run plays the tape
	call    runtime.Prepared // fixed, if a run of it is one call; else nil
	watch   []watched
	moved   []int // indices into watch: the handles whose memory a run exchanges, see exec.Fixed.Moved
	readers []reader
	room    []byte
	calls   int64 // runs that were one call and were not counted yet
	runs    int64 // other such runs
	quicks  int64 // counted runs since the last try to fix the Binding
}

// watched is a handle of a Binding and the value that it named when the Binding was fixed. A run
// is quick if no watched handle has changed.
type watched struct {
	h, v  *Value
	named *Value        // the former h.names
	blk   *memory.Block // the block if a run writes it, else nil
}

// reader is the Binding's count as a reader of a block.
type reader struct {
	blk   *memory.Block
	known bool
}

// turns is the largest number of runs that Run makes before it unlocks the stream for others.
const turns = 64

// longestUnfixed is the largest number of runs before the next try to fix a Binding.
const longestUnfixed = 64

// quick reports that the next run can be like the last one. The lock is held. A device's traces
// and checks never change; with them no Binding is ever fixed.
func (b *Binding) quick() bool {
	s := b.s
	if b.fixed == nil || s.q.Len() > 0 || s.taping != nil || !s.lane.Idle() || s.usable() != nil {
		return false
	}
	for i := range b.watch { // no function calls in this loop: it takes a third of a run's time
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
	for _, at := range b.moved { // no other Binding may have in its launches a block that moves
		if !b.watch[at].blk.BoundOnce() {
			return false
		}
	}
	return true
}

// Once makes a run if it is quick and one call, as nearly all runs of a few scalars are. It reports
// whether it did. Run would do the same, but takes 4 ns longer.
func (b *Binding) Once() (done bool) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.call == nil || !b.quick() || !b.call.Call(1) {
		return false
	}
	b.calls++
	return true
}

// Run makes n runs. It returns when they are done, or at the first run that fails.
func (b *Binding) Run(n int) error {
	for n > 0 {
		done, err := b.turn(n)
		if err != nil {
			b.s.dev.Rethrow() // the lock is released, so a hook's panic may continue
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

// turn makes some of the runs if they are quick, and returns their number.
func (b *Binding) turn(n int) (done int, err error) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if !b.quick() {
		return 0, nil
	}
	if done = min(n, turns); b.calling(done) {
		return done, nil
	}
	return 1, b.runList()
}

// calling makes n runs if each is one call. The lock is held.
func (b *Binding) calling(n int) bool {
	if b.call == nil || !b.call.Call(n) {
		return false
	}
	b.calls += int64(n)
	return true
}

// runList makes one run that is not one call. The lock is held.
func (b *Binding) runList() error {
	b.runs++
	b.s.hosts.Store(b.t.hosts)
	err := b.fixed.Run()
	b.s.hosts.Store(false)
	b.move()
	if err != nil {
		return b.failed()
	}
	b.call = b.fixed.OneCall()
	return nil
}

// move gives values the memory to which the last run has written them. The lock is held.
func (b *Binding) move() {
	for i, at := range b.moved {
		w := &b.watch[at]
		w.blk = b.fixed.Moved()[i]
		w.v.mem.Store(&w.blk.Dense)
	}
}

// failed ends a failed run. It returns nil if all results were computed after all. The lock is
// held.
func (b *Binding) failed() error {
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
		return b.t.missed(err)
	}
	if err := b.lay(); err != nil {
		return b.t.missed(err)
	}
	if b.rest > 0 {
		b.rest--
		return b.through()
	}
	few := b.fewRuns()
	ran, err := b.fix(true)
	if err != nil && !ran {
		return b.t.missed(err)
	}
	if err != nil {
		return err
	}
	if few || !ran {
		b.rest, b.last = b.last, min(2*b.last+1, longestUnfixed)
	}
	if ran {
		return nil
	}
	return b.through()
}

// worthFixing is the number of quick runs that pay for fixing a Binding. There are fewer if, for
// example, the program sets an argument before every run. The next runs then play the tape, and
// their number grows each time.
const worthFixing = 8

// fewRuns reports that too few runs were quick since the Binding was fixed.
func (b *Binding) fewRuns() bool {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.count()
	few := b.quicks < worthFixing
	if !few {
		b.last = 0
	}
	b.quicks = 0
	return few
}

// ready runs the queued ops and makes unlock wait for them.
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

// through plays the tape and copies its results to their memory.
func (b *Binding) through() error {
	out := make([]*Value, len(b.out))
	for i := range out {
		out[i] = new(Value)
	}
	done, err := b.t.Play(b.s, b.in, nil, out, true)
	if !done {
		return b.t.missed(b.unfit())
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
	b.quicks-- // count adds all runs, but this one was not quick
	b.s.mu.Unlock()
	return nil
}

// copy copies v to the memory of result i.
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
	to, err := b.place(b.out[i], tapeOut{dt: st.dt, form: st.form, as: b.t.outs[i].as}, false)
	if err != nil || st.form.Shape.Elems() == 0 {
		return err
	}
	return b.fill(to.mem.Load().Block, st)
}

// carry stores an error in the results.
func (b *Binding) carry(err error) {
	e, ok := err.(*operror.Error)
	if !ok {
		e = newOpError("run", err, nil)
	}
	b.s.mu.Lock()
	defer b.s.unlock()
	for i, h := range b.out {
		if v, err := b.place(h, b.t.outs[i], false); err == nil {
			v.mem.Load().Fault.Store(e)
		}
	}
}

// unfit returns the reason why the tape's inputs, or the handles that it sets, no longer fit.
func (b *Binding) unfit() error {
	for i, h := range b.in {
		if err := b.t.inputs[i].differs(h); err != nil {
			return fmt.Errorf("input %d of the recording does not fit: %w", i, err)
		}
	}
	for i := range b.t.states {
		if err := b.t.states[i].differs(b.t.states[i].h); err != nil {
			return fmt.Errorf("a tensor that the recording sets does not fit: %w", err)
		}
	}
	return fmt.Errorf("%w: an input is stored in another layout than when the recording was bound", ir.ErrUnsupported)
}

// differs returns how the value differs from the one with which the tape was recorded.
func (x *tapeInput) differs(h *Value) error {
	if err := h.Cause(); err != nil {
		return err
	}
	v := h.now()
	switch {
	case v.home.dev.Closed.Load():
		return runtime.ErrClosed
	case v.dt != x.dt:
		return fmt.Errorf("%w: its dtype is %v, but was %v when recorded", ir.ErrDType, v.dt, x.dt)
	case !x.form.Equal(v.form):
		return fmt.Errorf("%w: its shape is %v, but was %v when recorded", ir.ErrShape, v.form.Shape, x.form.Shape)
	}
	return nil
}

// Write overwrites the elements of input i; dt is their dtype. The handle then names the new
// value. Other readers of the old value keep the old elements.
func (b *Binding) Write(i int, dt ir.DType, data []byte) error {
	s, x := b.s, &b.t.inputs[i]
	switch {
	case dt != x.dt:
		return fmt.Errorf("%w: the input has dtype %v, the data %v", ir.ErrDType, x.dt, dt)
	case len(data) != x.form.Shape.Elems()*dt.Size():
		return fmt.Errorf("%w: the input has shape %v, the data %d elements", ir.ErrShape, x.form.Shape, len(data)/dt.Size())
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
	v, err := b.place(b.in[i], tapeOut{dt: x.dt, form: x.form}, false)
	if err != nil || len(data) == 0 {
		return err
	}
	b.room = append(b.room[:0], data...) // data itself would escape to the heap
	return s.dev.Driver.Write(v.mem.Load().Buf, dt, 0, b.room)
}

// released reports that the handle was given up.
func (h *Value) released() bool { return h.now().more.Load() == unnamed }

// Close ends the Binding. Its handles keep their values.
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

// count adds the runs to the device's counters. The lock is held.
func (b *Binding) count() {
	c := &b.s.dev.Counts
	c.BoundRuns.Add(b.runs + b.calls)
	c.BoundCalls.Add(b.calls)
	b.quicks += b.runs + b.calls
	b.runs, b.calls = 0, 0
	if b.fixed != nil {
		b.fixed.Count()
	}
}

// bindings lists the Bindings of a device, whose runs have to be counted.
type bindings struct {
	mu   sync.Mutex
	list []weak.Pointer[Binding]
}

func (x *bindings) add(b *Binding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = append(slices.DeleteFunc(x.list, func(p weak.Pointer[Binding]) bool { return p.Value() == nil }), weak.Make(b))
}

// count adds the runs of all Bindings to the counters, except those whose stream is locked now.
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

// settleBindings returns when the runs of Bindings that began before the device was closed have
// ended.
func (d *Device) settleBindings() {
	for _, s := range d.open.list() {
		if s.bindings.Load() > 0 {
			s.mu.Lock()
			s.mu.Unlock() //nolint:staticcheck // later users of the lock see that the device is closed
		}
	}
}

// value makes a value of the stream in memory. The caller's reader becomes the value's.
func (s *Stream) value(as *Carrier, dt ir.DType, form *queue.Form, st *memory.Storage) *Value {
	v := as.value()
	v.home, v.dt, v.form, v.state, v.stray = s, dt, form, stReady, true
	v.mem.Store(st)
	st.Count(memory.Handles)
	st.Watch()
	return v
}
