package stream

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/queue"
)

// A recorded function may set a handle that it did not make, such as a weight. Running
// the tape does so again: what the function computed from the handle's old value, the
// tape computes from what the handle names then, and it names the new value afterwards.

// tapeState is a handle from outside that is read and set.
type tapeState struct {
	tapeInput
	h    *Value
	seen *fusion.View // as what the tape sees it
}

// memory of the handle as the tape sees it, with a reader for the caller; nil where it
// is not what the tape needs.
func (x *tapeState) memory(s *Stream) *memory.Storage {
	st := x.of(x.h, s)
	if st == nil || st.View == x.seen {
		return st
	}
	return &memory.Storage{Block: st.Block, View: x.seen}
}

// tapeSet is a handle from outside and what it is set to.
type tapeSet struct {
	tapeSource
	h    *Value
	dt   ir.DType
	form *queue.Form
	as   *Carrier
}

// handleSet is a handle that was set, and what it named before.
type handleSet struct {
	h      *Value
	inside bool // it came to be in the recorded function
	value  *Value
	old    *memory.Storage // of the value
	kind
	shared bool // other handles name the value, and may have been meant by who reads it
	as     *Carrier
}

// several stands for different values as which one memory was read.
var several = new(Value)

// tapes is what a device knows while streams of it tape.
type tapes struct {
	n atomic.Int32 // streams that do

	mu   sync.Mutex
	made map[*Value]origin // handles that came to be meanwhile
	now  tapesNow
}

// tapesNow counts what a device knows.
type tapesNow struct {
	made    int
	strange int // sets that are no stream's that tapes
}

// origin is how a handle came to be.
type origin struct {
	computed bool   // by an op with operands
	of       *Value // what it is a view of, or the same on another stream
	number   int
}

func (x *tapes) begin() tapesNow {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.n.Add(1) == 1 {
		x.made = map[*Value]origin{}
	}
	return x.now
}

func (x *tapes) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.n.Add(-1) == 0 {
		x.made = nil
	}
}

// came notes, where a stream of the device tapes, a new handle and whether an op with
// operands computes it, or that it is of another value's memory.
func (s *Stream) came(h *Value, computed bool, of *Value) {
	x := &s.dev.tapes
	if x.n.Load() == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.made != nil {
		x.now.made++
		x.made[h] = origin{computed, of, x.now.made}
	}
}

// has says how a handle came to be, if it did since then.
func (x *tapes) has(h *Value, since tapesNow) (_ origin, has bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o, has := x.made[h]
	return o, has && o.number > since.made
}

// notes tells the tape that is being recorded, if there is one, what memory is read as: a
// value, or what that is a view of if it became one in the recorded function. It is nil for
// what a recipe starts from, which keeps it whatever handles are set to. The lock is held.
func (s *Stream) notes(st *memory.Storage, v *Value) {
	if s.taped() {
		s.taping.notes(st, v)
	}
}

func (t *Taping) notes(st *memory.Storage, v *Value) {
	if from, known := t.known[st]; known && from.kind != tapeConstant {
		return
	}
	for v != nil {
		o, _ := t.s.dev.tapes.has(v, t.since)
		if o.of == nil {
			break
		}
		v = o.of
	}
	if was, known := t.readAs[st]; known && was != v {
		v = several
	}
	t.readAs[st] = v
}

// takes notes for the stream's tape, if there is one, that v of another stream is an
// operand or a result.
func (s *Stream) takes(v *Value) {
	if s.onTape.Load() && v.home != s {
		if o, _ := s.dev.tapes.has(v, tapesNow{}); o.computed {
			s.elsewhere.Store(true)
		}
	}
}

// noteSet tells the tape that is being recorded, if there is one, that t names v, and
// named old, which still has its hold. A set of what is on no stream that tapes may be the
// recorded function's or another goroutine's: nobody can tell, so that what is recorded
// then cannot be run again.
func noteSet(t, old, v *Value) {
	var at *Stream
	unclear := false
	for _, s := range []*Stream{v.home, old.home} {
		if s != nil && s != at && s.onTape.Load() {
			unclear = at != nil
			at = s
		}
	}
	if at == nil || unclear {
		for _, s := range []*Stream{v.home, old.home} {
			if s != nil && s.dev.tapes.n.Load() > 0 {
				s.dev.tapes.mu.Lock()
				s.dev.tapes.now.strange++
				s.dev.tapes.mu.Unlock()
			}
		}
		return
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.taped() {
		at.taping.set(t, old)
	}
	if at.taping != nil {
		at.taping.keep(t, old) // behind that, which looks at who else has old
	}
}

// handleBefore is what a handle from outside named before it was set.
type handleBefore struct {
	h  *Value
	is found
	v  *Value // in place of that, with a hold, where it was not computed yet, or not written
}

// Undoes has Undo be possible: nobody is to see that the function was called.
func (t *Taping) Undoes() { t.undo = true }

// keep takes down what a handle named before it is set for the first time. The lock is held.
func (t *Taping) keep(h, old *Value) {
	if _, inside := t.s.dev.tapes.has(h, t.since); !t.undo || inside || slices.ContainsFunc(t.before, func(x handleBefore) bool { return x.h == h }) {
		return
	}
	st := old.mem.Load()
	switch {
	case st != nil && t.known[st].kind == tapeArg && t.knows(st):
	case st != nil && st.RetainLive():
		t.before = append(t.before, handleBefore{h: h, is: found{st, kind{old.dt, old.form}, old}})
	case old.more.Load() != unnamed:
		old.more.Add(1)
		t.before = append(t.before, handleBefore{h: h, v: old})
	}
}

func (t *Taping) knows(st *memory.Storage) bool { _, known := t.known[st]; return known }

// Undo has the handles that were set name what they did before. The tape has ended.
func (t *Taping) Undo() {
	if t == nil {
		return
	}
	for _, x := range t.before {
		if x.v == nil {
			t.s.back(x.h, x.is)
		} else if now := x.h.name(x.v); now != nil {
			now.end(&dropped)
		} else {
			x.v.end(&dropped)
		}
	}
	t.before = nil
}

func (t *Taping) set(h, old *Value) {
	for _, known := range t.handles {
		if known.h == h {
			return
		}
	}
	_, inside := t.s.dev.tapes.has(h, t.since)
	n := &handleSet{h: h, inside: inside, value: old, old: old.mem.Load(), kind: kind{old.dt, old.form}}
	t.handles = append(t.handles, n)
	t.broken = t.broken || t.revived[old]
	if n.old == nil {
		t.broken = t.broken || !inside && (t.shared(old) || old.home != t.s) // others may have it read, on another stream
	} else {
		from, known := t.known[n.old]
		n.inside = n.inside || known && from.kind == tapeArg
		n.shared = t.shared(old)
	}
}

// shared reports that handles from outside name a value beside the one that is set. Those
// that came to be in the recorded function, such as one that a derivative keeps, got it from
// there: whatever they are read for is read of what the handle names when a run begins.
func (t *Taping) shared(v *Value) bool {
	others := int(v.more.Load())
	if others <= 0 {
		return false
	}
	x := &t.s.dev.tapes
	x.mu.Lock()
	defer x.mu.Unlock()
	for h, o := range x.made {
		if o.number > t.since.made && h.names.Load() == v {
			others--
		}
	}
	return others > 0
}

// revive notes a value that is computed again.
func (t *Taping) revive(v *Value) {
	if t.revived == nil {
		t.revived = map[*Value]bool{}
	}
	t.revived[v] = true
}

// settleSets finds what the handles are set to, and what read their old values. The lock
// is held.
func (t *Taping) settleSets() {
	x := &t.s.dev.tapes
	x.mu.Lock()
	t.broken = x.now.strange != t.since.strange
	x.mu.Unlock()
	if t.broken {
		return
	}
	for _, n := range t.handles {
		if n.inside {
			continue
		}
		v := n.h.now()
		t.s.takes(v)
		st := v.mem.Load()
		if t.s.elsewhere.Load() || st == nil || !st.RetainLive() { // failed, given up, or on a stream where it waits
			t.broken = true
			return
		}
		t.notes(st, v)
		t.tape.sets = append(t.tape.sets, tapeSet{t.source(st), n.h, v.dt, v.form, n.as})
		st.Release()
	}
	for _, n := range t.handles {
		if n.inside || n.old == nil {
			continue
		}
		for i, st := range t.tape.constants { // the value, and views of it
			if st == nil || st.Block != n.old.Block {
				continue
			}
			as, known := t.readAs[st]
			if !known || as == several || as == n.value && n.shared {
				t.broken = true // nobody can tell by which handle it was read
				return
			}
			if as != n.value {
				continue // by one that keeps what it names, or by a recipe
			}
			t.becomes(tapeSource{tapeConstant, i}, tapeSource{tapeStated, len(t.tape.states)})
			t.tape.states = append(t.tape.states, tapeState{tapeInput{n.dt, n.form, n.old.View}, n.h, st.View})
		}
	}
	for i, set := range t.tape.sets {
		for _, p := range t.tape.parts {
			for _, r := range p.results {
				if set.tapeSource == (tapeSource{tapeProduct, r.product}) {
					p.sets = append(p.sets, i)
				}
			}
		}
	}
}

// becomes makes what was taken for a constant another source, everywhere.
func (t *Taping) becomes(was, is tapeSource) {
	change := func(x *tapeSource) {
		if *x == was {
			*x = is
		}
	}
	for _, p := range t.tape.parts {
		for i := range p.operands {
			change(&p.operands[i].from)
		}
	}
	for i := range t.tape.outs {
		change(&t.tape.outs[i].tapeSource)
	}
	for i := range t.tape.sets {
		change(&t.tape.sets[i].tapeSource)
	}
	t.tape.constants[was.n].Release()
	t.tape.constants[was.n] = nil
}

// setAll has the handles that the tape sets name what its parts are going to compute. The
// lock is held.
func (p *playing) setAll() {
	for _, set := range p.t.sets {
		if set.kind == tapeProduct {
			p.set(set.h, p.made[set.n])
		}
	}
	p.isSet = true
}

// fail has what no part came to compute carry the error: results, which the caller gives
// up, and what handles were set to. The lock is held.
func (p *playing) fail(err error, out []*Value) {
	for _, v := range p.made {
		if v == nil || v.state != stPending {
			continue
		}
		e, known := err.(*operror.Error)
		if !known {
			e = newOpError("run", err, nil)
		}
		v.state, v.ext = stFailed, &ext{err: e}
	}
	p.leaveSets(out)
}

// leaveSets ends the run's own hold on what handles were set to. The lock is held.
func (p *playing) leaveSets(out []*Value) {
	for _, v := range p.made {
		if v != nil && v.born != tapeScope && !slices.Contains(out, v) && v.letGo() {
			p.s.drop(v, &dropped) // others have set them since
		}
	}
}

// set has a handle name a value of the run. The lock is held.
func (p *playing) set(h, v *Value) {
	v.more.Add(1)
	old := h.name(v)
	if old == nil || !old.letGo() || old.home == nil {
		return
	}
	if old.home == p.s {
		p.s.drop(old, &dropped)
	} else {
		p.olds = append(p.olds, old)
	}
}
