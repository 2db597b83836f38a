package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/exec"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Stream is a sequence of ops on one device. It is safe for concurrent use;
// ops of one goroutine stay in order.
type Stream struct {
	dev  *Device
	caps *runtime.Caps // of the device
	num  uint64
	lane *lane.Lane // runs what was flushed

	mu      sync.Mutex // never held while another stream's is taken
	q       queue.Queue[held]
	node    *segment.Node[queue.Key, *plans.Known] // where the queue stands in the trie
	weight  int64                                  // bytes the queue will hold when it runs, about
	extra   int                                    // items that are not the program's own
	redone  int                                    // of these, nodes
	soft    int                                    // items from which a cut is looked for
	stepOps int                                    // ops of a step at most
	budget  int64                                  // weight above which one is looked for earlier
	alien   map[*memory.Storage]int32              // operands without a handle on this stream
	lines   []string                               // where nodes were recorded, as far as known
	stay    []*Value                               // pending ones that a handle was set to
	wanted  []want                                 // pending ones: see Want
	still   bool                                   // no cuts, for a while
	scopes  atomic.Int32                           // that are open and in no other
	whole   atomic.Int32                           // ops of the program that are being recorded as several: see Whole
	closed  atomic.Bool
	work    scratch // reused by flushes
	bind    exec.Binder
	due     uint64  // what who gives the lock up waits for: see unlock
	taping  *Taping // nil: what is recorded is not kept
	trial   *Trial  // nil: what is recorded runs

	bindings  atomic.Int32 // runs of which write over what values of the stream are: see Binding
	onTape    atomic.Bool  // taping is not nil
	elsewhere atomic.Bool  // and an operand was computed on another stream meanwhile

	faults operror.List
}

// scratch is what a flush needs of its own.
type scratch struct {
	seg     segment.Segment
	hot     segment.Segment // where the sizes are known: but for its scalars the geometry's
	query   plans.Query
	recipes []*recipe // of settle, by leaf set
	lent    []want    // who wants what is lent
}

// held is what the queue knows of a relative id: the handle, if there is one,
// and for operands the memory they are read from.
type held struct {
	v  *Value          // nil: internal, nobody can ask for it
	st *memory.Storage // operands only; the queue is one of its readers
}

// Device of the stream.
func (s *Stream) Device() *Device { return s.dev }

// Close runs what is queued and ends the stream. Its tensors stay readable.
func (s *Stream) Close() error {
	err := s.Sync(context.Background())
	s.closed.Store(true)
	return err
}

// Report keeps an error for Err and fires the trace hook.
func (s *Stream) Report(e *operror.Error) {
	if s.trial != nil {
		return // nobody asked for what failed
	}
	s.faults.Add(e)
	s.dev.faults.Add(e)
	s.dev.OnError(e)
}

// usable says why nothing more can be recorded.
func (s *Stream) usable() error {
	if s.closed.Load() || s.dev.Closed.Load() {
		return runtime.ErrClosed
	}
	return nil
}

// step moves down the trie by an item just appended. The lock is held.
func (s *Stream) step(e *queue.Item) { s.node = s.dev.plans.Trie.Step(s.node, &e.Key) }

// weigh adds a result to the bytes that the queue will hold when it runs:
// operands, and results that no op has consumed yet.
//
// A view takes no memory of its own: an operand that is broadcast for a
// contraction has more elements than there is memory.
func (s *Stream) weigh(op ir.Op, id int32) {
	if op.Class() == ir.ClassView {
		return
	}
	sl := &s.q.Slots[id]
	sl.Weight = sl.Form.Elems * int64(s.dev.Caps.ElemSize[sl.DT])
	s.weight += sl.Weight
}

// use notes that a node reads a relative id.
func (s *Stream) use(id int32) {
	sl := &s.q.Slots[id]
	if sl.Uses++; sl.Uses == 1 && sl.Def >= 0 {
		s.weight -= sl.Weight
	}
}

// slot finds a ready value's relative id, adding it as an operand of the
// queue. The queue becomes a reader of its memory. The lock is held.
func (s *Stream) slot(v *Value) int32 {
	if v.queued() {
		return v.id
	}
	st := v.mem.Load()
	st.Retain()
	s.notes(st, v)
	s.weight += st.Bytes
	v.id = s.q.Input(held{v, st}, v.dt, v.form)
	return v.id
}

// watchRead has the collector tell of a block that the queue may be the last reader
// of: a stream may be dropped without a word. The default one is not, as its device
// has it, and a step there would feel the cost.
func (s *Stream) watchRead(b *memory.Block) {
	if s != s.dev.def {
		b.Watch()
	}
}

// foreign finds or adds an operand that has no handle on this stream. The
// caller's reader becomes the queue's. The lock is held.
func (s *Stream) foreign(st *memory.Storage, dt ir.DType, form *queue.Form) int32 {
	if id, known := s.alien[st]; known {
		st.Release() // the queue reads it already
		return id
	}
	if s.alien == nil {
		s.alien = make(map[*memory.Storage]int32)
	}
	s.watchRead(st.Block) // a scope may release its handle
	s.weight += st.Bytes
	id := s.q.Input(held{nil, st}, dt, form)
	s.alien[st] = id
	return id
}

// unlock ends what was done under the stream's lock, and waits for a job that was
// flushed meanwhile for somebody to read, or for the device to come near to what is
// recorded: whoever else uses the stream need not. If a hook panicked, here or on
// another goroutine that ran jobs, it is the caller's turn now.
func (s *Stream) unlock() {
	due := s.due
	s.due = 0
	s.mu.Unlock()
	if due > 0 {
		lane.After(s.lane, due).Wait()
		if f := s.dev.AfterWait; f != nil {
			f()
		}
	}
	s.dev.Rethrow()
}
