package exec

import (
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Bound is a list of plans that run one after another and are bound to memory once. It has one
// list of launches. A run puts the buffers of its inputs and results into the list; the Bound
// owns the memory of all intermediate results. All runs in progress are of one lane.
type Bound struct {
	parts    []boundPart
	hosts    []boundHost
	launches []runtime.Launch  // of all parts; field at holds the buffers at places
	places   [][]runtime.Place // by slot of inputs and fresh
	inputs   int               // number of input slots; the slots of fresh follow them
	fresh    []fresh           // memory that each run writes anew
	still    []*memory.Block   // constants, and memory of own; their slots follow those of fresh
	own      []*memory.Block
	homes    []runtime.Home   // of fresh; nil if there are none
	nobodys  []runtime.Buffer // buffers of own, which nothing reads after a run has ended
	results  []boundResult

	Bytes   int64  // size of own
	Aliases int64  // views that one run makes
	Ended   func() // called after each run

	stretches []stretch
	torn      bool // faults of own may be those of an earlier run; used by the lane that runs it

	mu      sync.Mutex
	lane    *jobqueue.Lane
	pending int  // runs that have not ended
	spoilt  bool // it must not run again
	freed   bool
	alive   atomic.Int32
	Used    atomic.Uint64 // time of the last use, by the caller's clock
}

// boundPart is one of the plans.
type boundPart struct {
	known    *planstore.Known
	geo      *planstore.Geometry
	seg      segment.Segment
	first, n int
	mem      []seenAt // by relative id
	units    []autotune.Unit
}

// seenAt is the memory and the layout of a tensor.
type seenAt struct {
	slot int // -1 for no memory; the number of a spot until the Sketch has ended
	view *fusion.View
}

// fresh is memory that a run writes and that outlives the run, or an input's memory.
type fresh struct {
	over  int // the input that it may overwrite, -1 for none
	bytes int64
	by    *planstore.Known
	id    int32
}

// boundResult is the memory of a result.
type boundResult struct {
	slot int
	view *fusion.View
}

// Claim reserves the Bound for a run of a lane. It returns false if runs of another lane have
// not ended, or if the Bound must not run again.
func (b *Bound) Claim(l *jobqueue.Lane) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spoilt || b.pending > 0 && b.lane != l {
		return false
	}
	b.lane = l
	b.pending++
	b.alive.Add(1)
	return true
}

// Unclaim ends a run, or cancels one that was claimed.
func (b *Bound) Unclaim() {
	b.mu.Lock()
	b.pending--
	b.mu.Unlock()
	b.unuse()
}

// Drop frees the memory when all runs have ended. It is called once.
func (b *Bound) Drop() {
	b.mu.Lock()
	b.spoilt = true
	b.mu.Unlock()
	b.unuse()
}

// Over reports that the Bound must not run again and that no run is in progress.
func (b *Bound) Over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spoilt && b.pending == 0
}

// Holds reports that the Bound still has its memory.
func (b *Bound) Holds() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.freed
}

// Yield frees the memory unless a run is in progress, and reports whether it did.
func (b *Bound) Yield() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending > 0 || b.freed {
		return false
	}
	b.free()
	return true
}

func (b *Bound) unuse() {
	if b.alive.Add(-1) == 0 {
		b.mu.Lock()
		b.free()
		b.mu.Unlock()
	}
}

// free frees the memory. The caller holds mu.
func (b *Bound) free() {
	b.spoilt, b.freed = true, true
	b.unprepare()
	for _, own := range b.own {
		own.Release()
	}
	b.own = nil
	leave(b.homes)
}

// settle makes a home for each fresh memory, if the device gains from that.
func (b *Bound) settle(d runtime.Device) {
	x, ok := d.(runtime.Homer)
	if !ok {
		return
	}
	for range b.fresh {
		h := x.NewHome()
		if h == nil {
			return
		}
		b.homes = append(b.homes, h)
	}
	goruntime.AddCleanup(b, leave, b.homes) // a Recording may become garbage without a call of Release
}

func leave(homes []runtime.Home) {
	for _, h := range homes {
		h.Close()
	}
}

// Settle sets the launches to the choices that the tuner has made, and reports whether every
// part has its choices.
func (b *Bound) Settle(x *autotune.Tuner) bool {
	for i := range b.parts {
		p := &b.parts[i]
		units, ok := x.Settled(&p.geo.Tuned)
		if !ok {
			return false
		}
		p.units = units
		autotune.Take(units, b.launches[p.first:p.first+p.n])
	}
	return true
}

// Current reports that the plan store, which has the plans known for part i, would choose the
// same plan again, and that the launches use the tuner's present choices.
func (b *Bound) Current(x *autotune.Tuner, i int, known []*planstore.Known) bool {
	p := &b.parts[i]
	at := slices.Index(known, p.known)
	if at < 0 {
		return false
	}
	for _, e := range known[:at] { // plans of other sizes may come before it
		if e.Replayed.Load() != nil || e.Plan.Check(&p.seg) && e.Suits(&p.seg) {
			return false
		}
	}
	units, ok := x.Settled(&p.geo.Tuned)
	return ok && p.known.Replayed.Load() == nil && autotune.Taken(units, b.launches[p.first:p.first+p.n])
}

// Parts returns the number of parts.
func (b *Bound) Parts() int { return len(b.parts) }

// Part describes part i for the trace hooks.
func (b *Bound) Part(i int) (ops, kernels int, plan string) {
	p := &b.parts[i]
	return len(p.seg.Nodes), p.n, p.known.Plan.Mode.String()
}

// Kernels returns the number of launches.
func (b *Bound) Kernels() int { return len(b.launches) }

// put stores a run's buffers in all launches.
func (b *Bound) put(blocks []*memory.Block) {
	for s := range b.sections {
		s.put(blocks)
	}
}

// unprepare closes the prepared lists.
func (b *Bound) unprepare() {
	for s := range b.sections {
		s.unprepare()
	}
}
