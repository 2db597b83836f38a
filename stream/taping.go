package stream

import (
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// Tape is a computation that a stream recorded, to be run again. It has the segments as they were
// in the queue, and the sources of their operands. Apart from its Bounds it is immutable. Any
// number of streams of its device may use it at the same time.
type Tape struct {
	dev       *Device
	inputs    []tapeInput
	parts     []*tapePart
	outs      []tapeOut
	hosts     bool              // some parts are host ops
	products  int               // results of parts that other parts or the caller need
	constants []*memory.Storage // memory from outside, with a reader for the tape; nil if it became a state
	states    []tapeState
	sets      []tapeSet

	users     atomic.Int32 // owners of the tape, and Plays in progress
	bounds    bounds
	wanted    []bool // products that later parts read or that outlive a run; set when first bound, under bounds.mu
	outliving []int  // the products that outlive a run
}

// tapeInput is the required type and view of an argument.
type tapeInput struct {
	dt   ir.DType
	form *queue.Form
	view *fusion.View
}

// tapeSource is the source of an operand of a part or of a result of the tape.
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
	tapeStated                   // the value of a handle from outside
)

// tapePart is one segment, or one host op.
type tapePart struct {
	host     *HostOp // nil for a segment; else the part has one operand and one result, without slots
	saved    *queue.Saved[held]
	lines    []string // of the nodes, if SetSite gave them; else those of the plan hold
	end      segment.End
	operands []tapeOperand
	results  []tapeResult
	last     []tapeSource // arguments, states and products that no later part reads
	sets     []int        // indices into the tape's sets: those whose value the part computes
	unread   int          // results that no part and no caller reads

	node atomic.Pointer[segment.Node[queue.Key, *planstore.Known]] // its node in the trie, where known
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

// Taping is a tape during its recording.
type Taping struct {
	s      *Stream
	tape   *Tape
	known  map[*memory.Storage]tapeSource
	readAs map[*memory.Storage]*Value // the value as which memory from outside was read: see notes
	broken bool                       // the recorded ops cannot be run again
	ended  bool

	handles []*handleSet // the handles that were set
	undo    bool         // Undo will restore the handles
	before  []handleBefore
	revived map[*Value]bool // values recomputed for the tape, so they are from before it
	since   tapesNow        // the counts when the taping began
	by      int64           // the goroutine that records
}

// StartTape records on a tape the ops that follow, with arguments in memory. Until End or Cancel
// only the caller uses the stream. At the end of each segment, all results that were not released
// are written, because the program may request them. A run of the tape writes only the results
// that it needs.
func (s *Stream) StartTape(args []*Value) *Taping {
	s.dev.Counts.Recordings.Add(1)
	s.mu.Lock()
	defer s.unlock()
	if s.q.Len() > 0 {
		s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
	}
	t := &Taping{s: s, tape: &Tape{dev: s.dev}, known: map[*memory.Storage]tapeSource{}, readAs: map[*memory.Storage]*Value{}}
	t.tape.users.Store(1)
	if s.taping != nil { // of two nested tapes, neither sees all ops
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
		// The same memory may be several arguments and a constant too. A Storage of its own for
		// each use keeps them apart.
		was := v.mem.Load()
		st := &memory.Storage{Block: was.Block, View: was.View}
		v.mem.Store(st)
		t.known[st] = tapeSource{tapeArg, i}
		t.tape.inputs = append(t.tape.inputs, tapeInput{v.dt, v.form, st.View})
	}
	t.since, t.by = s.dev.tapes.begin(), goroutine()
	s.taping = t
	s.elsewhere.Store(false)
	s.onTape.Store(true)
	return t
}

// End runs the queued ops and ends the recording. results are the handles that the caller needs;
// they are in memory afterwards, or have an error. End returns nil if the tape cannot be run
// again: the function read a value on which the ops may depend, or something failed.
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

// leaveOut makes the parts not write the products that no result, set or later part reads. The
// recorded function left them alive, so the recording had to write them.
func (t *Taping) leaveOut() {
	asked := map[int]bool{}
	ask := func(from tapeSource) {
		if from.kind == tapeProduct {
			asked[from.n] = true
		}
	}
	for from := range t.tape.ends {
		ask(*from)
	}
	for _, p := range slices.Backward(t.tape.parts) {
		p.results = slices.DeleteFunc(p.results, func(r tapeResult) bool {
			if p.host != nil {
				return false
			}
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

// source returns the source of memory for the tape. Memory that it does not know existed before
// and does not change, so it is a constant.
func (t *Taping) source(st *memory.Storage) tapeSource {
	from, known := t.known[st]
	if !known {
		from = tapeSource{tapeConstant, len(t.tape.constants)}
		t.known[st] = from
		st.Retain()
		st.Watch() // the program may drop the tape without Release
		t.tape.constants = append(t.tape.constants, st)
	}
	return from
}

// leaks notes that another stream reads memory. The tape does not have the ops of that stream. If
// the memory is an argument or a product of the tape, a later run would therefore see the other
// stream's old result, so the tape is broken. The lock is held.
func (t *Taping) leaks(st *memory.Storage) {
	if from, known := t.known[st]; known && from.kind != tapeConstant {
		t.broken = true
	}
}

// part records the queue, which is about to run. The lock is held.
func (t *Taping) part(end segment.End) {
	if t.broken {
		return
	}
	q := &t.s.q
	p := &tapePart{saved: q.Save(), end: end}
	if t.s.site != "" {
		p.lines = slices.Clone(t.s.lines)
	}
	for id := range q.Slots {
		if st := q.Slots[id].H.st; st != nil {
			p.operands = append(p.operands, tapeOperand{int32(id), t.source(st)})
		}
	}
	t.tape.parts = append(t.tape.parts, p)
}

// made records that a result of the current part is in memory. The lock is held.
func (t *Taping) made(id int32, v *Value) {
	if t.broken {
		return
	}
	p := t.tape.parts[len(t.tape.parts)-1]
	p.results = append(p.results, tapeResult{id, t.tape.products, v.dt, v.form})
	t.known[v.mem.Load()] = tapeSource{tapeProduct, t.tape.products}
	t.tape.products++
}

// ends yields the sources of results, and of values to which handles are set.
func (t *Tape) ends(yield func(*tapeSource) bool) {
	for i := range t.outs {
		if !yield(&t.outs[i].tapeSource) {
			return
		}
	}
	for i := range t.sets {
		if !yield(&t.sets[i].tapeSource) {
			return
		}
	}
}

// lastReads finds for each argument, state and product the last part that reads it.
func (t *Taping) lastReads() {
	seen := map[tapeSource]bool{}
	for from := range t.tape.ends {
		seen[*from] = true
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

// taped reports that the stream records a tape now, and that it is not broken. The lock is held.
func (s *Stream) taped() bool { return s.taping != nil && !s.taping.broken }

// spoil marks the tape that is being recorded, if there is one, as broken. The lock is held.
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

// Release ends the owner's use of the tape. Plays in progress go on; the last user drops the
// constants, and a later Play does nothing. Each owner calls it once.
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
