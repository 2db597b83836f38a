package stream

import (
	"bytes"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
)

// A recorded function may set a handle that it did not make, such as a weight. A run of the tape
// does the same: it reads the value that the handle names at the start of the run in place of the
// handle's old value, and afterwards the handle names the new value.

// tapeState is a handle from outside that the function read and set.
type tapeState struct {
	tapeInput
	h    *Value
	seen *fusion.View // the view through which the tape reads it
}

// memory returns the memory of the handle as the tape reads it, with a reader for the caller. It
// returns nil if the memory does not fit the tape.
func (x *tapeState) memory(s *Stream) *memory.Storage {
	st := x.of(x.h, s)
	if st == nil || st.View == x.seen {
		return st
	}
	return &memory.Storage{Block: st.Block, View: x.seen}
}

// tapeSet is a handle from outside and the source of the value to which it is set.
type tapeSet struct {
	tapeOut
	h *Value
}

// handleSet is a handle that the function set, and the value that it named before.
type handleSet struct {
	h      *Value
	inside bool // the recorded function made it
	value  *Value
	old    *memory.Storage // memory of the value
	kind
	shared bool // other handles name the value too, and it may have been read through them
	as     *Carrier
}

// several stands for different values as which the same memory was read.
var several = new(Value)

// tapes is the information that a device keeps while streams of it record tapes.
type tapes struct {
	n atomic.Int32 // number of these streams

	mu   sync.Mutex
	made map[*Value]origin // handles made while a stream records
	now  tapesNow
}

// tapesNow has the counts of tapes.
type tapesNow struct {
	made    int
	strange int // sets that belong to no stream that records a tape
}

// origin tells how a handle was made.
type origin struct {
	computed bool   // an op with operands computes it
	of       *Value // the value of which it is a view, or an alias on another stream
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

// came records a new handle while a stream of the device records a tape. computed says that an op
// with operands computes the handle's value; of is the value whose memory it uses, if any.
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

// has returns the origin of a handle, if the handle was made after since.
func (x *tapes) has(h *Value, since tapesNow) (_ origin, has bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o, has := x.made[h]
	return o, has && o.number > since.made
}

// notes tells the current tape as which value memory is read. A value that became a view during
// the recording counts as the value that it views. v is nil if the memory belongs to a recipe: a
// recipe keeps its memory, whatever handles are set to. The lock is held.
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

// takes tells the stream's tape, if there is one, that v of another stream is an operand or a
// result.
func (s *Stream) takes(v *Value) {
	if s.onTape.Load() && v.home != s {
		if o, _ := s.dev.tapes.has(v, tapesNow{}); o.computed {
			s.elsewhere.Store(true)
		}
	}
}

// noteSet tells the current tape, if there is one, that t names v now and named old before; old
// still has t's hold. Tapes that are being recorded cannot be run again if another goroutine sets a
// handle on their stream, which a run must not repeat. The same holds if neither value is on a stream
// that records a tape: the set may then be by the recorded function or by another goroutine.
func noteSet(t, old, v *Value) {
	var at *Stream
	unclear := false
	for _, s := range []*Stream{v.home, old.home} {
		if s != nil && s != at && s.onTape.Load() {
			unclear = at != nil
			at = s
		}
	}
	if at == nil || unclear || !at.recordedHere() {
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
		at.taping.keep(t, old) // after set, which counts the other handles of old
	}
}

// recordedHere reports whether the calling goroutine records the stream's tape, if there is one.
func (s *Stream) recordedHere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taping == nil || s.taping.by == goroutine()
}

// goroutine is the number of the calling goroutine. It takes about a microsecond.
func goroutine() int64 {
	var text [64]byte // "goroutine 18 [running]:" and more
	words := bytes.Fields(text[:goruntime.Stack(text[:], false)])
	n, _ := strconv.ParseInt(string(words[1]), 10, 64)
	return n
}

// handleBefore is the value that a handle from outside named before it was set.
type handleBefore struct {
	h  *Value
	is found
	v  *Value // used in place of is, with a hold, if the value was not computed or not written yet
}

// Undoes makes Undo possible, for a call of the function that must leave no trace.
func (t *Taping) Undoes() { t.undo = true }

// keep saves the value that a handle named before it is set for the first time. The lock is held.
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

// Undo makes the handles that were set name their earlier values. The tape has ended.
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

// shared reports that handles from outside, other than the one that is set, name a value. Handles
// that the recorded function made, such as one that a derivative keeps, do not count: a run reads
// for them the value that the set handle names when the run begins.
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

// revive records that a value is computed again.
func (t *Taping) revive(v *Value) {
	if t.revived == nil {
		t.revived = map[*Value]bool{}
	}
	t.revived[v] = true
}

// settleSets finds the new values of the handles that were set, and the operands that read their
// old values. The lock is held.
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
		if t.s.elsewhere.Load() || st == nil || !st.RetainLive() { // it failed, was given up, or is not computed yet on another stream
			t.broken = true
			return
		}
		t.notes(st, v)
		t.tape.sets = append(t.tape.sets, tapeSet{tapeOut{t.source(st), v.dt, v.form, n.as}, n.h})
		st.Release()
	}
	for _, n := range t.handles {
		if n.inside || n.old == nil {
			continue
		}
		for i, st := range t.tape.constants { // the value and views of it
			if st == nil || st.Block != n.old.Block {
				continue
			}
			as, known := t.readAs[st]
			if !known || as == several || as == n.value && n.shared {
				t.broken = true // it is unknown through which handle the memory was read
				return
			}
			if as != n.value {
				continue // read through another handle that keeps its value, or for a recipe
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

// becomes replaces a constant by another source everywhere in the tape.
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
	for from := range t.tape.ends {
		change(from)
	}
	t.tape.constants[was.n].Release()
	t.tape.constants[was.n] = nil
}

// setAll makes the handles that the tape sets name the values that its parts will compute. The
// lock is held.
func (p *playing) setAll() {
	for _, set := range p.t.sets {
		if set.kind == tapeProduct {
			p.set(set.h, p.made[set.n])
		}
	}
	p.isSet = true
}

// fail stores the error in the products that no part computed: results, which the caller gives
// up, and values to which handles were set. The lock is held.
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

// leaveSets ends the run's own hold on the values to which handles were set. The lock is held.
func (p *playing) leaveSets(out []*Value) {
	for _, v := range p.made {
		if v != nil && v.born != tapeScope && !slices.Contains(out, v) && v.letGo() {
			p.s.drop(v, &dropped) // another goroutine has set the handles again
		}
	}
}

// set makes a handle name a value of the run. The lock is held.
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
