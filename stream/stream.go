package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Stream is a sequence of ops on one device. It is safe for concurrent use. The ops of one
// goroutine stay in order.
type Stream struct {
	dev  *Device
	caps *runtime.Caps // of the device
	num  uint64
	lane *jobqueue.Lane // runs the flushed segments

	mu      sync.Mutex // no other stream's lock is taken while this one is held
	q       queue.Queue[held]
	node    *segment.Node[queue.Key, *planstore.Known] // the queue's position in the trie
	weight  int64                                      // approximate bytes that the queue holds when it runs
	extra   int                                        // items that the engine added, such as recomputed ops
	redone  int                                        // the nodes among the extra items
	soft    int                                        // number of items from which a cut is considered
	stepOps int                                        // largest number of ops in a step
	budget  int64                                      // weight above which a cut is considered earlier
	alien   map[place]int32                            // operands without a handle on this stream, and lent ones
	turn    uint64                                     // number of queues so far: relative ids belong to one of them
	lines   []string                                   // source lines of the nodes, where known
	site    string                                     // stands for the caller's line, see SetSite; "": none
	stay    []*Value                                   // pending values that a handle was set to
	wanted  []want                                     // pending values that a handle wants: see Want
	still   bool                                       // the stream is not cut while this is set
	scopes  atomic.Int32                               // open scopes that have no outer scope
	whole   atomic.Int32                               // ops in progress that consist of several ops: see Whole
	closed  atomic.Bool
	work    scratch // buffers that flushes reuse
	bind    exec.Binder
	due     uint64  // number of the job for which unlock waits, 0 for none
	taping  *Taping // nil unless a tape is being recorded
	trial   *Trial  // nil unless the stream belongs to a Trial, which runs nothing

	ends      hostEnds     // of the host ops
	hosts     atomic.Bool  // a run with host ops holds the lock
	bindings  atomic.Int32 // Bindings whose runs overwrite values of this stream: see Binding
	onTape    atomic.Bool  // taping is not nil
	elsewhere atomic.Bool  // an operand was computed on another stream during the taping

	faults operror.List
}

// scratch is the working memory of a flush.
type scratch struct {
	seg     segment.Segment
	hot     segment.Segment // a segment of known sizes: a geometry's, with other scalars
	query   planstore.Query
	recipes []*recipe // the recipes of the flush, by leaf set
	shorts  []*recipe // the same for recipes that start from lent results
	lent    []want    // the handles that want a value that this flush lends
	unasked []int32   // the results that this flush writes although nothing asked for them
	items   int       // the queue's length before these were marked
	node    *segment.Node[queue.Key, *planstore.Known]
	none    bool    // the flush writes no results unasked, because it did so for nothing before
	cheap   []want  // the handles that want a value that is cheap to recompute
	due     []want  // all these handles
	prices  []price // by relative id
	works   map[workKey]int32
}

// place is memory and the layout in which it is read.
type place struct {
	*memory.Block
	*fusion.View
}

func placeOf(st *memory.Storage) place { return place{st.Block, st.View} }

// held is the queue's information about a relative id: the value, if a handle names it, and for
// operands the memory from which they are read.
type held struct {
	v  *Value          // nil: internal, the program cannot request it
	st *memory.Storage // set for operands only; the queue is a reader of it
}

// Device returns the device of the stream.
func (s *Stream) Device() *Device { return s.dev }

// Close runs the queued ops and ends the stream. The stream's tensors stay readable.
func (s *Stream) Close() error {
	err := s.Sync(context.Background())
	s.closed.Store(true)
	return err
}

// Report keeps an error for Err and calls the trace hook.
func (s *Stream) Report(e *operror.Error) {
	if s.trial != nil {
		return // the program did not request the failed result
	}
	s.faults.Add(e)
	s.dev.faults.Add(e)
	s.dev.OnError(e)
}

// usable returns the reason why the stream accepts no more ops, or nil.
func (s *Stream) usable() error {
	if s.closed.Load() || s.dev.Closed.Load() {
		return runtime.ErrClosed
	}
	return nil
}

// step moves down the trie by the item just appended. The lock is held.
func (s *Stream) step(e *queue.Item) { s.node = s.dev.plans.Trie.Step(s.node, &e.Key) }

// weigh adds a result to the stream's weight. The weight counts operands, and results that no op
// has read yet.
//
// A view has no memory of its own and is not counted. Its shape can even have more elements than
// the device has memory, for example when an operand is broadcast for a contraction.
func (s *Stream) weigh(op ir.Op, id int32) {
	if op.Class() == ir.ClassView {
		return
	}
	sl := &s.q.Slots[id]
	sl.Weight = sl.Form.Elems * int64(s.dev.Caps.ElemSize[sl.DT])
	s.weight += sl.Weight
}

// use counts a node as a reader of a relative id. A result leaves the weight with its first
// reader.
func (s *Stream) use(id int32) {
	sl := &s.q.Slots[id]
	if sl.Uses++; sl.Uses == 1 && sl.Def >= 0 {
		s.weight -= sl.Weight
	}
}

// slot returns the relative id of a value in memory, and adds the value as an operand of the
// queue if it is new. The queue becomes a reader of its memory. The lock is held.
func (s *Stream) slot(v *Value) int32 {
	if v.queued() {
		return v.id
	}
	st := v.mem.Load()
	if st.Lent { // a recipe may have added it
		if id, known := s.addedFor(st); known {
			v.id, s.q.Slots[id].H.v = id, v
			return id
		}
	}
	st.Retain()
	st.Used()
	s.notes(st, v)
	s.weight += st.Bytes
	v.id = s.q.Input(held{v, st}, v.dt, v.form)
	if st.Lent {
		s.alien[placeOf(st)] = v.id // for recipes
	}
	return v.id
}

// addedFor returns the operand that a recipe added for the memory of a lent value.
func (s *Stream) addedFor(st *memory.Storage) (id int32, added bool) {
	id, known := s.known(st)
	return id, known && s.q.Slots[id].H.v == nil
}

// known returns the operand of the queue for this memory. Further ops may read it.
func (s *Stream) known(st *memory.Storage) (id int32, known bool) {
	if s.alien == nil {
		s.alien = make(map[place]int32)
	}
	id, known = s.alien[placeOf(st)]
	return id, known && !s.q.Slots[id].Released
}

// watchRead makes the collector report the death of a block whose last reader may be the queue,
// because the program may drop a stream without closing it. The default stream needs no report:
// its device keeps it, and the report would slow its training steps.
func (s *Stream) watchRead(b *memory.Block) {
	if s != s.dev.def {
		b.Watch()
	}
}

// foreign finds or adds an operand that has no handle on this stream. The caller's reader becomes
// the queue's. The lock is held.
func (s *Stream) foreign(st *memory.Storage, dt ir.DType, form *queue.Form) int32 {
	if id, known := s.known(st); known {
		st.Release() // the queue is a reader already
		return id
	}
	s.watchRead(st.Block) // a scope may release its handle
	st.Used()
	s.weight += st.Bytes
	id := s.q.Input(held{nil, st}, dt, form)
	s.alien[placeOf(st)] = id
	return id
}

// unlock releases the stream's lock, and then waits if a flush requested it: until the flushed
// job has run, or until the device has come close enough to the recorded ops. Other users of the
// stream can take the lock during this wait. If a hook panicked, here or in another goroutine
// that ran jobs, unlock continues the panic in the caller's goroutine.
func (s *Stream) unlock() {
	due := s.due
	s.due = 0
	s.mu.Unlock()
	if due > 0 {
		jobqueue.After(s.lane, due).Wait()
		if f := s.dev.AfterWait; f != nil {
			f()
		}
	}
	s.dev.Rethrow()
}
