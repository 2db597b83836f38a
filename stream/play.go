package stream

import (
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Results is the number of values that Play makes.
func (t *Tape) Results() int { return len(t.outs) }

// tapeScope owns what is made between the parts of a tape, so that the collector
// need not be told of it: Play releases all of it.
var tapeScope = new(Scope)

// playing is one run of a tape.
type playing struct {
	t    *Tape
	s    *Stream
	args []*memory.Storage // each with a reader, nil once it was dropped
	made []*Value          // products, of those that somebody asks for

	states []*memory.Storage // as args
	inputs []*memory.Storage // both
	wait   bool              // the caller waits for the results
	isSet  bool              // handles name what the parts compute
	olds   []*Value          // of other streams, to be ended when the lock was given up
}

// players are runs that have ended: a small tape takes little longer than making one.
var players = sync.Pool{New: func() any { return new(playing) }}

// leave gives the run back, with the room it has and nothing in it.
func (p *playing) leave() {
	clear(p.args)
	clear(p.made)
	clear(p.states)
	clear(p.inputs)
	clear(p.olds)
	*p = playing{args: p.args[:0], made: p.made[:0], states: p.states[:0], inputs: p.inputs[:0], olds: p.olds[:0]}
	players.Put(p)
}

// Play runs the tape on the stream: it queues again what was queued, and runs
// it. It returns false, and has done nothing, where the arguments are not like
// those that it was recorded with, and where the tape was released. Arguments marked in gives are released: their
// memory may become a result's. out are zero Values for the results; there are none where
// Play returns an error. With wait they are in memory afterwards, else when what was
// submitted has run, and then they carry the errors that were met.
func (t *Tape) Play(s *Stream, in []*Value, gives []bool, out []*Value, wait bool) (done bool, err error) {
	s.mu.Lock()
	err = s.usable()
	s.mu.Unlock()
	if err != nil {
		return true, newOpError("run", err, nil)
	}
	if len(in) != len(t.inputs) || s.dev != t.dev || !t.retain() {
		return false, nil
	}
	defer t.Release()
	p := players.Get().(*playing)
	defer p.leave()
	p.t, p.s, p.wait = t, s, wait
	for i, v := range in {
		st := t.inputs[i].of(v, s)
		if st == nil {
			p.drop()
			return false, nil
		}
		p.args = append(p.args, st)
	}
	for i := range t.states {
		st := t.states[i].memory(s)
		if st == nil {
			p.drop()
			return false, nil
		}
		p.states = append(p.states, st)
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

// queue submits the parts, and returns when they have run, if that is waited for.
func (p *playing) queue(out []*Value) (err error) {
	s := p.s
	s.mu.Lock()
	defer s.unlock()
	defer p.drop()
	s.spoil()
	if s.q.Len() > 0 {
		s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
	}
	if b := p.t.claim(s); b != nil && p.replay(b, out) {
		return nil
	}
	p.begin(out)
	for _, part := range p.t.parts {
		if err = p.run(part); err != nil {
			p.fail(err, out)
			return err
		}
	}
	p.finish(out)
	return nil
}

// of is the memory of an argument, with a reader for the caller, or nil where
// it is not what the tape needs.
func (x *tapeInput) of(v *Value, s *Stream) *memory.Storage {
	is := v.now()
	if is.home == nil || is.home.dev != s.dev || is.dt != x.dt || !x.form.Equal(is.form) {
		return nil
	}
	st, err := handOver(v, nil, s)
	if err != nil {
		return nil
	}
	if st.dt != x.dt || !x.form.Equal(st.form) || !plans.SameView(st.View, x.view) { // it may be another value by now
		st.Release()
		return nil
	}
	return st.Storage
}

// begin makes a value for each product: the caller's where it is a result.
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

// memory of what a part reads.
func (p *playing) memory(from tapeSource) *memory.Storage {
	switch from.kind {
	case tapeArg:
		return p.args[from.n]
	case tapeConstant:
		return p.t.constants[from.n]
	case tapeStated:
		return p.states[from.n]
	}
	return p.made[from.n].mem.Load()
}

// run queues a part and submits it. The lock is held.
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
			if v.home == nil { // else a handle names it already
				v.home, v.dt, v.form = s, r.dt, r.form
			}
			v.state, v.id = stPending, r.slot
			s.q.Slots[r.slot].H.v = v
		}
	}
	for _, i := range part.sets {
		if !p.isSet {
			p.set(p.t.sets[i].h, p.made[p.t.sets[i].n])
		}
	}
	for _, o := range part.last {
		p.done(o)
	}
	s.node = part.find(s)
	s.flush(part.end, p.wait)
	for _, r := range part.results {
		if v := p.made[r.product]; v != nil && v.state != stReady {
			err := v.readable()
			if err == nil {
				err = fmt.Errorf("%w: a result of a tape is not in memory", runtime.ErrClosed)
			}
			return err
		}
	}
	return nil
}

// find is where the queued part is in the trie. What was known of it may have
// been evicted.
func (part *tapePart) find(s *Stream) *segment.Node[queue.Key, *plans.Known] {
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

// done drops the reader that a source has for the tape.
func (p *playing) done(o tapeSource) {
	switch o.kind {
	case tapeArg:
		p.args[o.n].Release()
		p.args[o.n] = nil
	case tapeStated:
		p.states[o.n].Release()
		p.states[o.n] = nil
	case tapeProduct:
		if v := p.made[o.n]; v.state == stReady {
			st := v.mem.Load()
			v.mem.Store(nil)
			v.state, v.ext = stReleased, &dropped
			st.ReleaseAs(memory.Handles)
		}
	}
}

// finish makes results of what is no product, or several results, and what handles are
// set to of what no part computed.
func (p *playing) finish(out []*Value) {
	for i, o := range p.t.outs {
		if out[i].state == stNone {
			p.make(out[i], o)
		}
	}
	for _, set := range p.t.sets {
		if set.kind != tapeProduct {
			v := set.as.value()
			p.make(v, tapeOut{tapeSource: set.tapeSource, dt: set.dt, form: set.form})
			p.set(set.h, v)
			v.letGo()
		}
	}
	p.leaveSets(out)
}

// make gives a value the memory of a source.
func (p *playing) make(v *Value, o tapeOut) {
	st := p.memory(o.tapeSource)
	v.home, v.dt, v.form, v.state = p.s, o.dt, o.form, stReady
	st.RetainAs(memory.Handles)
	v.mem.Store(st)
	st.Watch()
}

// faults looks for them when all has run. Nobody else knows the results yet.
func (p *playing) faults(out []*Value) error {
	for _, values := range [...][]*Value{out, p.made} {
		for _, v := range values {
			if v == nil || v.born == tapeScope {
				continue
			}
			if st := v.mem.Load(); st != nil { // who was set may be so again, by others
				if e := st.Fault.Load(); e != nil {
					operror.See(e)
					return e
				}
			}
		}
	}
	return p.s.dev.Driver.Wait(false)
}

// drop gives up what is left: after an error, also results.
func (p *playing) drop() {
	for i, st := range p.args {
		if st != nil {
			st.Release()
			p.args[i] = nil
		}
	}
	for i, st := range p.states {
		if st != nil {
			st.Release()
			p.states[i] = nil
		}
	}
	for i, v := range p.made {
		if v != nil && v.born == tapeScope {
			p.done(tapeSource{tapeProduct, i})
		}
	}
}
