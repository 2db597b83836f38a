package exec

import (
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Bound is a list of plans that run one after another and are bound to memory once. It has one
// list of launches. A run puts the buffers of its inputs and results into the list; the Bound
// owns the memory of all intermediate results. All runs in progress are of one lane.
type Bound struct {
	parts    []boundPart
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

	// Used by the lane that runs it.
	at       []runtime.Buffer // by slot: the buffer in the launches' places, nil for none
	prepared runtime.Prepared
	over     []bool // by slot: the value of over with which the list was prepared
	wait     int    // runs until the list is prepared; waited is the number after the last attempt
	waited   int
	ran      profile.List

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

// Part describes part i for the trace hooks.
func (b *Bound) Part(i int) (ops, kernels int, plan string) {
	p := &b.parts[i]
	return len(p.seg.Nodes), p.n, p.known.Plan.Mode.String()
}

// Kernels returns the number of launches.
func (b *Bound) Kernels() int { return len(b.launches) }

// put stores a run's buffers in the prepared list, or else in the launches. It returns false if
// one does not fit in the prepared list.
func (b *Bound) put(blocks []*memory.Block) bool {
	for slot, at := range b.places {
		buf := blocks[slot].Buf
		if b.at[slot] == buf {
			continue
		}
		if b.prepared == nil {
			fill(b.launches, at, buf)
		} else if !b.prepared.Set(at, buf) {
			return false
		}
		b.at[slot] = buf
	}
	return true
}

// fill stores a buffer in launches.
func fill(list []runtime.Launch, places []runtime.Place, buf runtime.Buffer) {
	for _, at := range places {
		list[at.Launch].Args[at.Arg].Buf = buf
	}
}

// forget drops buffers that the next run is unlikely to use, so that the Bound does not keep
// other memory alive. It keeps inputs that a run overwrites, as states of a loop are. A prepared
// list holds addresses only.
func (b *Bound) forget(keep []bool) {
	for slot := range b.at {
		if !keep[slot] && b.at[slot] != nil {
			b.at[slot] = nil
			if b.prepared == nil {
				fill(b.launches, b.places[slot], nil)
			}
		}
	}
}

// run runs the list with the buffers of one run: the prepared list, or else the launches. over
// marks the slots that overwrite inputs; which launches may run at the same time depends on it.
func (b *Bound) run(x *Binder, blocks []*memory.Block, over []bool, segment uint64) (err error) {
	defer operror.Recover("run", &err)
	if b.prepared != nil && x.Watched() && b.ran.Due() {
		return b.timed(x, blocks, segment)
	}
	if b.prepared != nil {
		if slices.Equal(over, b.over) && b.put(blocks) {
			return b.ready(x, segment)
		}
		b.unprepare()
	}
	b.put(blocks)
	if x.Watched() {
		b.tell()
	}
	if err = x.Launch(b.launches, &b.ran, x.submitter(segment)); err == nil {
		b.prepare(x, over)
	}
	return err
}

// timed runs the list launch by launch to measure it, and leaves the prepared list as it is.
// Preparing the list again would cost as much as many runs.
func (b *Bound) timed(x *Binder, blocks []*memory.Block, segment uint64) error {
	list := slices.Clone(b.launches)
	for i := range list {
		list[i].Args = slices.Clone(list[i].Args)
	}
	for slot, at := range b.places {
		fill(list, at, blocks[slot].Buf)
	}
	b.tell()
	return x.Launch(list, &b.ran, x.submitter(segment))
}

// tell counts one run in the report of every plan.
func (b *Bound) tell() {
	for i := range b.parts {
		b.parts[i].known.List().Elsewhere()
	}
}

// ready runs the prepared list.
func (b *Bound) ready(x *Binder, segment uint64) error {
	if !x.Watched() {
		return b.prepared.Run()
	}
	start := time.Now()
	err := b.prepared.Run()
	if err == nil {
		b.tell()
		x.Ran(len(b.launches), &b.ran, x.submitter(segment), start)
	}
	return err
}

// prepare asks the device to prepare the list. If the device cannot do it yet, later runs ask
// again, each time after a longer wait.
func (b *Bound) prepare(x *Binder, over []bool) {
	p, ok := x.Driver.(runtime.Preparer)
	if !ok {
		return
	}
	if b.wait > 0 {
		b.wait--
		return
	}
	b.prepared, b.over = p.Prepare(b.launches, b.nobodys), append(b.over[:0], over...)
	b.waited = min(2*b.waited+1, longestWait)
	b.wait = b.waited
}

// longestWait is the largest number of runs between two attempts to prepare a list.
const longestWait = 256

// unprepare closes the prepared list.
func (b *Bound) unprepare() {
	if b.prepared != nil {
		b.prepared.Close()
		b.prepared = nil
		clear(b.at) // the launches hold buffers of earlier runs
	}
}
