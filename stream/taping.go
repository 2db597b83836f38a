package stream

import (
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// Tape is a computation as a stream recorded it, for running it again: its
// segments as they stood in the queue, and where the operands of each come from.
// But for what it is bound to it is immutable, and used by any number of streams of its device at once.
type Tape struct {
	dev       *Device
	inputs    []tapeInput
	parts     []*tapePart
	outs      []tapeOut
	products  int               // results of parts that others, or the caller, ask for
	constants []*memory.Storage // memory from outside; the tape is one of its readers; nil for what came to be a state
	states    []tapeState
	sets      []tapeSet

	users     atomic.Int32 // whoever holds the tape, and each Play under way
	bounds    bounds
	wanted    []bool // products that later parts read or that outlive a run, once it was bound; under bounds.mu
	outliving []int  // those that outlive a run
}

// tapeInput is what an argument must be like.
type tapeInput struct {
	dt   ir.DType
	form *queue.Form
	view *fusion.View
}

// tapeSource says what an operand of a part, or a result of the tape, is.
type tapeSource struct {
	kind tapeKind
	n    int
}

// tapeOut is a result of the tape.
type tapeOut struct {
	tapeSource
	dt   ir.DType
	form *queue.Form
	as   *Carrier
}

type tapeKind uint8

const (
	tapeArg      tapeKind = iota // an argument
	tapeConstant                 // memory from outside that is no argument
	tapeProduct                  // a result of a part
	tapeStated                   // what a handle from outside names
)

// tapePart is one segment.
type tapePart struct {
	saved    *queue.Saved[held]
	end      segment.End
	operands []tapeOperand
	results  []tapeResult
	last     []tapeSource // arguments, states and products that no later part reads
	sets     []int        // those of the tape whose value the part computes
	unread   int          // results that nobody asks for

	node atomic.Pointer[segment.Node[queue.Key, *plans.Known]] // where it is in the trie, as far as known
}

type tapeOperand struct {
	slot int32
	from tapeSource
}

type tapeResult struct {
	slot    int32
	product int
	dt      ir.DType
	form    *queue.Form
}

// Taping is a tape that a stream is recording.
type Taping struct {
	s      *Stream
	tape   *Tape
	known  map[*memory.Storage]tapeSource
	readAs map[*memory.Storage]*Value // what memory from outside was read as: see notes
	broken bool                       // what is recorded cannot be run again
	ended  bool

	handles []*handleSet // that were set
	undo    bool         // they are to name again what they did before
	before  []handleBefore
	revived map[*Value]bool // computed again for the tape, and so from before
	since   tapesNow        // when it began
}

// StartTape makes a tape of what is recorded from now on, on arguments that are
// in memory. Until its End or Cancel nobody else uses the stream. Everything that was not
// released when a segment ends is written, since it may be asked for; the tape itself
// writes only what is.
func (s *Stream) StartTape(args []*Value) *Taping {
	s.dev.Counts.Recordings.Add(1)
	s.mu.Lock()
	defer s.unlock()
	if s.q.Len() > 0 {
		s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
	}
	t := &Taping{s: s, tape: &Tape{dev: s.dev}, known: map[*memory.Storage]tapeSource{}, readAs: map[*memory.Storage]*Value{}}
	t.tape.users.Store(1)
	if s.taping != nil { // one within another: neither sees all that is recorded
		s.spoil()
		t.broken = true
		return t
	}
	for i, h := range args {
		v := h.now()
		if v.home != s || v.state != stReady {
			t.broken = true
			continue
		}
		// The same memory may be several arguments, and a constant as well: what is
		// asked of each must be told apart.
		was := v.mem.Load()
		st := &memory.Storage{Block: was.Block, View: was.View}
		v.mem.Store(st)
		t.known[st] = tapeSource{tapeArg, i}
		t.tape.inputs = append(t.tape.inputs, tapeInput{v.dt, v.form, st.View})
	}
	t.since = s.dev.tapes.begin()
	s.taping = t
	s.elsewhere.Store(false)
	s.onTape.Store(true)
	return t
}

// End runs what is queued. Results are the handles that the caller asks for,
// which are in memory then, or carry an error. The tape is nil where it cannot
// be run again: a value was read, on which what was recorded may depend, or
// something failed.
func (t *Taping) End(results []*Value) *Tape {
	s := t.s
	s.mu.Lock()
	defer s.unlock()
	s.flush(segment.End{Reason: segment.ReasonSync, ID: -1, All: true}, true)
	for _, h := range results {
		v := h.now()
		if v.home != s || v.state != stReady {
			t.broken = true
			break
		}
		st := v.mem.Load()
		t.notes(st, v)
		t.tape.outs = append(t.tape.outs, tapeOut{t.source(st), v.dt, v.form, nil})
	}
	if !t.broken {
		t.settleSets()
	}
	t.leave()
	if t.broken {
		t.tape.Release()
		return nil
	}
	t.leaveOut()
	t.lastReads()
	return t.tape
}

// leaveOut has the parts not write what the function left alive, since it may have been
// asked for, and what no result or set is and no later part reads.
func (t *Taping) leaveOut() {
	asked := map[int]bool{}
	ask := func(from tapeSource) {
		if from.kind == tapeProduct {
			asked[from.n] = true
		}
	}
	for _, o := range t.tape.outs {
		ask(o.tapeSource)
	}
	for _, set := range t.tape.sets {
		ask(set.tapeSource)
	}
	for _, p := range slices.Backward(t.tape.parts) {
		p.results = slices.DeleteFunc(p.results, func(r tapeResult) bool {
			if !asked[r.product] {
				p.saved.Release(r.slot)
				p.unread++
			}
			return !asked[r.product]
		})
		for _, o := range p.operands {
			ask(o.from)
		}
	}
}

// Cancel ends the tape without a result, unless it has ended.
func (t *Taping) Cancel() {
	if t == nil || t.ended {
		return
	}
	t.s.mu.Lock()
	t.leave()
	t.s.mu.Unlock()
	t.tape.Release()
}

func (t *Taping) leave() {
	t.ended = true
	if t.s.taping == t {
		t.s.taping = nil
		t.s.onTape.Store(false)
		t.s.dev.tapes.end()
	}
}

// source says what memory is to the tape. What it does not know was there
// before, and stays what it is.
func (t *Taping) source(st *memory.Storage) tapeSource {
	from, known := t.known[st]
	if !known {
		from = tapeSource{tapeConstant, len(t.tape.constants)}
		t.known[st] = from
		st.Retain()
		st.Watch() // the tape may be dropped without a word
		t.tape.constants = append(t.tape.constants, st)
	}
	return from
}

// leaks notes that another stream reads memory: what it makes of it is not on the
// tape, so that where the memory is an argument or a result of the tape's, running
// that again would find the other stream's result as it was. The lock is held.
func (t *Taping) leaks(st *memory.Storage) {
	if from, known := t.known[st]; known && from.kind != tapeConstant {
		t.broken = true
	}
}

// part notes the queue as it is about to run. The lock is held.
func (t *Taping) part(end segment.End) {
	if t.broken {
		return
	}
	q := &t.s.q
	p := &tapePart{saved: q.Save(), end: end}
	for id := range q.Slots {
		if st := q.Slots[id].H.st; st != nil {
			p.operands = append(p.operands, tapeOperand{int32(id), t.source(st)})
		}
	}
	t.tape.parts = append(t.tape.parts, p)
}

// made notes that a result of the part that runs is in memory. The lock is held.
func (t *Taping) made(id int32, v *Value) {
	if t.broken {
		return
	}
	p := t.tape.parts[len(t.tape.parts)-1]
	p.results = append(p.results, tapeResult{id, t.tape.products, v.dt, v.form})
	t.known[v.mem.Load()] = tapeSource{tapeProduct, t.tape.products}
	t.tape.products++
}

// lastReads finds the part behind which an argument or a product is of no use.
func (t *Taping) lastReads() {
	seen := map[tapeSource]bool{}
	for _, o := range t.tape.outs {
		seen[o.tapeSource] = true
	}
	for _, set := range t.tape.sets {
		seen[set.tapeSource] = true
	}
	for i := len(t.tape.parts) - 1; i >= 0; i-- {
		p := t.tape.parts[i]
		for _, o := range p.operands {
			if o.from.kind != tapeConstant && !seen[o.from] {
				seen[o.from] = true
				p.last = append(p.last, o.from)
			}
		}
	}
}

// taped reports that what is recorded now is kept. The lock is held.
func (s *Stream) taped() bool { return s.taping != nil && !s.taping.broken }

// spoil says that what is being taped, if something is, cannot be run again. The
// lock is held.
func (s *Stream) spoil() {
	if s.taping != nil {
		s.taping.broken = true
	}
}

// retain adds a user unless the last one is gone.
func (t *Tape) retain() bool {
	for {
		n := t.users.Load()
		if n == 0 {
			return false
		}
		if t.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends the tape: its constants are given up, behind each Play that is under
// way, and a later one does nothing. It is called once.
func (t *Tape) Release() {
	if t.users.Add(-1) > 0 {
		return
	}
	t.bounds.drop()
	for _, st := range t.constants {
		if st != nil {
			st.Release()
		}
	}
	t.constants = nil
}
