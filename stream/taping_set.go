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
}

// handleSet is a handle that was set, and what it named before.
type handleSet struct {
	h      *Value
	inside bool // it came to be in the recorded function
	old    *memory.Storage
	kind
	shared bool // others have the old value, and may have been meant by who reads it
}

// tapes is what a device knows while streams of it tape.
type tapes struct {
	n atomic.Int32 // streams that do

	mu      sync.Mutex
	made    map[*Value]bool // handles that came to be meanwhile; true: by an op with operands
	strange int             // sets that are no stream's that tapes
}

func (x *tapes) begin() (strange int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.n.Add(1) == 1 {
		x.made = map[*Value]bool{}
	}
	return x.strange
}

func (x *tapes) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.n.Add(-1) == 0 {
		x.made = nil
	}
}

// came notes, where a stream of the device tapes, a new handle and whether an op with
// operands computes it.
func (s *Stream) came(h *Value, computed bool) {
	x := &s.dev.tapes
	if x.n.Load() == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.made != nil {
		x.made[h] = computed
	}
}

func (x *tapes) has(h *Value) (computed, has bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	computed, has = x.made[h]
	return computed, has
}

// takes notes for the stream's tape, if there is one, that v of another stream is an
// operand or a result.
func (s *Stream) takes(v *Value) {
	if s.onTape.Load() && v.home != s {
		if computed, _ := s.dev.tapes.has(v); computed {
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
				s.dev.tapes.strange++
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
}

func (t *Taping) set(h, old *Value) {
	for _, known := range t.handles {
		if known.h == h {
			return
		}
	}
	_, inside := t.s.dev.tapes.has(h)
	n := &handleSet{h: h, inside: inside, old: old.mem.Load(), kind: kind{old.dt, old.form}}
	t.handles = append(t.handles, n)
	t.broken = t.broken || t.revived[old]
	if n.old == nil {
		t.broken = t.broken || !inside && old.more.Load() > 0 // others may have it read, on another stream
	} else {
		from, known := t.known[n.old]
		n.inside = n.inside || known && from.kind == tapeArg
		n.shared = old.more.Load() > 0 || n.old.Held.Load() >= 2*memory.Handles
	}
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
	t.broken = x.strange != t.strange
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
		t.tape.sets = append(t.tape.sets, tapeSet{t.source(st), n.h, v.dt, v.form})
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
			if n.shared {
				t.broken = true
				return
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
