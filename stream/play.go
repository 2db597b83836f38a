package stream

import (
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Results returns the number of values that Play makes.
func (t *Tape) Results() int { return len(t.outs) }

// tapeScope is the owner of values that pass from one part of a tape to another. Play releases
// all of them, so the collector need not report their death.
var tapeScope = new(Scope)

// playing is one run of a tape.
type playing struct {
	t      *Tape
	s      *Stream
	inputs []*memory.Storage // of arguments, then of states, each with a reader; nil after it was dropped
	made   []*Value          // the products that the caller or a later part needs
	wait   bool              // the caller waits for the results
	dry    bool              // it only looks for plans: host ops do not run
	isSet  bool              // handles name the values that the parts will compute
	olds   []*Value          // values of other streams, which end after the lock is released
}

// players caches ended runs, because allocating a playing takes nearly as long as running a small
// tape.
var players = sync.Pool{New: func() any { return new(playing) }}

// leave returns the run to players. It keeps the slices' memory and clears their elements.
func (p *playing) leave() {
	clear(p.inputs)
	clear(p.made)
	clear(p.olds)
	*p = playing{inputs: p.inputs[:0], made: p.made[:0], olds: p.olds[:0]}
	players.Put(p)
}

// Play runs the tape on the stream: it queues the recorded ops again and runs them. It returns
// false, and does nothing, if the arguments differ from those with which the tape was recorded,
// or if the tape was released. Play releases the arguments that gives marks, and a result may
// reuse their memory. out are zero Values for the results; they stay empty if Play returns an
// error. With wait, the results are in memory afterwards. Without wait, they are in memory when
// the submitted jobs have run, and they have the errors of these jobs.
func (t *Tape) Play(s *Stream, in []*Value, gives []bool, out []*Value, wait bool) (done bool, err error) {
	return t.play(s, in, gives, out, wait, false)
}

// play is Play, or with dry a run that waits and only looks for plans.
func (t *Tape) play(s *Stream, in []*Value, gives []bool, out []*Value, wait, dry bool) (done bool, err error) {
	s.mu.Lock()
	err = s.usable()
	s.mu.Unlock()
	if err != nil {
		return true, t.missed(newOpError("run", err, nil))
	}
	if len(in) != len(t.inputs) || s.dev != t.dev || !t.retain() {
		return false, nil
	}
	defer t.Release()
	p := players.Get().(*playing)
	defer p.leave()
	p.t, p.s, p.wait, p.dry = t, s, wait, dry
	var fits bool
	if p.inputs, fits = t.memory(s, in, p.inputs); !fits {
		return false, nil
	}
	for i, v := range in {
		if i < len(gives) && gives[i] {
			Give(v)
		}
	}
	if err = p.queue(out); err == nil && wait {
		err = p.faults(out)
	}
	for _, v := range p.olds {
		v.ended(&dropped)
	}
	return true, err
}

// queue submits the parts. It also waits for them if p.wait is set.
func (p *playing) queue(out []*Value) (err error) {
	s := p.s
	s.mu.Lock()
	defer s.unlock()
	defer p.drop()
	s.spoil()
	if s.q.Len() > 0 {
		s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
	}
	if !p.dry || !p.t.hosts {
		if b := p.t.claim(s); b != nil && p.replay(b, out) {
			return nil
		}
	}
	p.begin(out)
	for i, part := range p.t.parts {
		if err = p.part(part); err != nil {
			for _, later := range p.t.parts[i+1:] {
				if later.host != nil && !p.dry { // its function must hear of it
					later.host.submit(s, nil, nil, err)
				}
			}
			p.fail(err, out)
			return err
		}
	}
	p.finish(out)
	return nil
}

// memory appends to list the memory of arguments and states, each with a reader. fits is false if
// some memory does not fit the tape; the readers are then released.
func (t *Tape) memory(s *Stream, in []*Value, list []*memory.Storage) (_ []*memory.Storage, fits bool) {
	for i := range len(in) + len(t.states) {
		var st *memory.Storage
		if i < len(in) {
			st = t.inputs[i].of(in[i], s)
		} else {
			st = t.states[i-len(in)].memory(s)
		}
		if st == nil {
			release(list)
			return list[:0], false
		}
		list = append(list, st)
	}
	return list, true
}

func release(list []*memory.Storage) {
	for i, st := range list {
		if st != nil {
			st.Release()
			list[i] = nil
		}
	}
}

// outside returns the memory of an argument, a state or a constant, or nil for a product. inputs
// has the arguments' memory and then the states'.
func (t *Tape) outside(from tapeSource, inputs []*memory.Storage) *memory.Storage {
	switch from.kind {
	case tapeArg:
		return inputs[from.n]
	case tapeStated:
		return inputs[len(t.inputs)+from.n]
	case tapeConstant:
		return t.constants[from.n]
	}
	return nil
}

// of returns the memory of an argument with a reader for the caller, or nil if it does not fit
// the tape.
func (x *tapeInput) of(v *Value, s *Stream) *memory.Storage {
	is := v.now()
	if is.home == nil || is.home.dev != s.dev || is.dt != x.dt || !x.form.Equal(is.form) {
		return nil
	}
	st, err := handOver(v, nil, s)
	if err != nil {
		return nil
	}
	if st.dt != x.dt || !x.form.Equal(st.form) || !planstore.SameView(st.View, x.view) { // a concurrent Set may have changed the value
		st.Release()
		return nil
	}
	return st.Storage
}

// begin makes a value for each product. For a result of the tape, the value is the caller's.
func (p *playing) begin(out []*Value) {
	p.beginOuts(out)
	for _, part := range p.t.parts {
		for _, o := range part.last {
			if o.kind == tapeProduct {
				p.made[o.n] = &Value{born: tapeScope}
			}
		}
	}
}

// beginOuts makes a value for each product that outlives the run.
func (p *playing) beginOuts(out []*Value) {
	if p.t.products == 0 || len(p.made) > 0 {
		return
	}
	p.made = slices.Grow(p.made, p.t.products)[:p.t.products]
	for i, o := range p.t.outs {
		if o.kind == tapeProduct && p.made[o.n] == nil {
			p.made[o.n] = out[i]
		}
	}
	for _, set := range p.t.sets {
		if set.kind == tapeProduct && p.made[set.n] == nil {
			p.made[set.n] = set.as.value()
		}
	}
}

// memory returns the memory that a part reads.
func (p *playing) memory(from tapeSource) *memory.Storage {
	if from.kind == tapeProduct {
		return p.made[from.n].mem.Load()
	}
	return p.t.outside(from, p.inputs)
}

// part submits a part. The lock is held.
func (p *playing) part(part *tapePart) error {
	if part.host == nil {
		return p.run(part)
	}
	if err := p.host(part); err != nil {
		return err
	}
	p.name(part)
	for _, o := range part.last {
		p.done(o)
	}
	return nil
}

// name makes the handles that the tape sets name the results of a part.
func (p *playing) name(part *tapePart) {
	for _, i := range part.sets {
		if !p.isSet {
			p.set(p.t.sets[i].h, p.made[p.t.sets[i].n])
		}
	}
}

// run queues the ops of a part and submits them. The lock is held.
func (p *playing) run(part *tapePart) error {
	s := p.s
	s.q.Load(part.saved)
	for _, o := range part.operands {
		st := p.memory(o.from)
		st.Retain()
		s.q.Slots[o.slot].H.st = st
	}
	for _, r := range part.results {
		if v := p.made[r.product]; v != nil {
			if v.home == nil { // otherwise a handle names it already
				v.home, v.dt, v.form = s, r.dt, r.form
			}
			v.state, v.id = stPending, r.slot
			s.q.Slots[r.slot].H.v = v
		}
	}
	p.name(part)
	for _, o := range part.last {
		p.done(o)
	}
	s.node = part.find(s)
	s.lines = append(s.lines, part.lines...)
	s.flush(part.end, p.wait)
	for _, r := range part.results {
		if v := p.made[r.product]; v != nil && v.state != stReady {
			err := v.readable()
			if err == nil {
				err = fmt.Errorf("%w: a result of the recording is not in memory", runtime.ErrClosed)
			}
			return err
		}
	}
	return nil
}

// find returns the trie node of the queued part. The part's earlier node may have been evicted.
func (part *tapePart) find(s *Stream) *segment.Node[queue.Key, *planstore.Known] {
	trie := s.dev.plans.Trie
	if n := part.node.Load(); trie.Find(n, part.end) != nil {
		return n
	}
	n := trie.Root()
	for i := range s.q.Items {
		n = trie.Step(n, &s.q.Items[i].Key)
	}
	part.node.Store(n)
	return n
}

// done drops the tape's reader of a source.
func (p *playing) done(o tapeSource) {
	switch o.kind {
	case tapeArg:
		release(p.inputs[o.n : o.n+1])
	case tapeStated:
		at := len(p.t.inputs) + o.n
		release(p.inputs[at : at+1])
	case tapeProduct:
		if v := p.made[o.n]; v.state == stReady {
			st := v.mem.Load()
			v.mem.Store(nil)
			v.state, v.ext = stReleased, &dropped
			st.ReleaseAs(memory.Handles)
		}
	}
}

// finish makes the remaining results: those that are no product, and further results of the same
// product. It also sets the handles whose new value no part computes.
func (p *playing) finish(out []*Value) {
	for i, o := range p.t.outs {
		if out[i].state == stNone {
			p.make(out[i], o)
		}
	}
	for _, set := range p.t.sets {
		if set.kind != tapeProduct {
			v := set.as.value()
			p.make(v, set.tapeOut)
			p.set(set.h, v)
			v.letGo()
		}
	}
	p.leaveSets(out)
}

// make makes v a value in the memory of a source.
func (p *playing) make(v *Value, o tapeOut) {
	st := p.memory(o.tapeSource)
	v.home, v.dt, v.form, v.state = p.s, o.dt, o.form, stReady
	st.RetainAs(memory.Handles)
	v.mem.Store(st)
	st.Watch()
}

// faults returns the first fault of the results after all parts have run. Other streams do not
// know the results yet.
func (p *playing) faults(out []*Value) error {
	for _, values := range [...][]*Value{out, p.made} {
		for _, v := range values {
			if v == nil || v.born == tapeScope {
				continue
			}
			if st := v.mem.Load(); st != nil { // nil if another goroutine has set the handle again and so released v
				p.t.written(st)
				if e := st.Fault.Load(); e != nil {
					operror.See(e)
					return e
				}
			}
		}
	}
	return p.s.dev.Driver.Wait(false)
}

// drop releases the arguments, states and products that are left. After an error these include
// results.
func (p *playing) drop() {
	release(p.inputs)
	for i, v := range p.made {
		if v != nil && v.born == tapeScope {
			p.done(tapeSource{tapeProduct, i})
		}
	}
}
