package exec

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Bound is plans that run one after another, bound to memory once: one list of launches,
// in which a run puts the buffers of its inputs and results, and memory of its own for
// what lies between. It has one run at a time, or several of one lane.
type Bound struct {
	parts    []boundPart
	launches []runtime.Launch // of all parts; in places there is what at says
	places   [][]runtime.Place
	inputs   int     // slots of inputs; those of what is written into other memory each time come behind
	fresh    []fresh // of these slots
	own      []*memory.Block
	nobodys  []runtime.Buffer // of own memory: nobody reads them once a run has ended
	fixed    []fixedAt
	slotOf   []int // of spots; -1 where they are fixed
	results  []boundResult

	Bytes   int64  // of its own memory
	Aliases int64  // of a run
	Ended   func() // called behind each run

	// Of the lane that runs it.
	at       []runtime.Buffer // by slot: what lies in the launches' places, nil for none
	prepared runtime.Prepared
	over     []bool // by slot, when it was prepared: written over an input
	wait     int    // runs until the list is prepared, and how many that were last time
	waited   int
	ran      profile.List

	mu      sync.Mutex
	lane    *lane.Lane
	pending int  // runs that have not ended
	spoilt  bool // it is not to be run any more
	freed   bool
	alive   atomic.Int32
	Used    atomic.Uint64 // by a clock of the caller's
}

// boundPart is one of the plans.
type boundPart struct {
	known    *plans.Known
	geo      *plans.Geometry
	seg      segment.Segment
	first, n int
	mem      []seenAt // by relative id
	units    []autotune.Unit
}

// seenAt is where a tensor is, and how it lies there.
type seenAt struct {
	spot int // -1 for nowhere
	view *fusion.View
}

// fresh is memory that is written and outlives the run, or is an input's.
type fresh struct {
	over  int // the input that it may be written over, -1 for none
	bytes int64
	by    *plans.Known
	id    int32
}

type fixedAt struct {
	spot  int
	block *memory.Block
}

// boundResult is where a result is.
type boundResult struct {
	slot     int // -1: it is the constant
	constant *memory.Block
	view     *fusion.View
}

// Claim takes the Bound for a run of a lane. It reports false where another lane's have
// not ended, and where it is of no use any more.
func (b *Bound) Claim(l *lane.Lane) bool {
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

// Unclaim is the end of a run, or of one that was not to be.
func (b *Bound) Unclaim() {
	b.mu.Lock()
	b.pending--
	b.mu.Unlock()
	b.unuse()
}

// Drop gives the memory back, behind the runs that have not ended. It is called once.
func (b *Bound) Drop() {
	b.mu.Lock()
	b.spoilt = true
	b.mu.Unlock()
	b.unuse()
}

// Over reports that it is not to be run any more, and that nothing runs.
func (b *Bound) Over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spoilt && b.pending == 0
}

// Holds reports that it has memory of its own.
func (b *Bound) Holds() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.freed
}

// Yield gives the memory back where nothing runs, and reports whether that was so.
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

// free gives the memory back. mu is held.
func (b *Bound) free() {
	b.spoilt, b.freed = true, true
	b.unprepare()
	for _, own := range b.own {
		own.Release()
	}
	b.own = nil
}

// Settle has the launches run by the choices that were made for them, and reports
// whether all are made.
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

// Current reports that part i is what the plan store would give, if that has these plans
// for it, and that its launches run by the choices that are made by now.
func (b *Bound) Current(x *autotune.Tuner, i int, known []*plans.Known) bool {
	p := &b.parts[i]
	at := slices.Index(known, p.known)
	if at < 0 {
		return false
	}
	for _, e := range known[:at] { // those of other sizes may come before it
		if e.Replayed.Load() != nil || e.Plan.Check(&p.seg) && e.Suits(&p.seg) {
			return false
		}
	}
	units, ok := x.Settled(&p.geo.Tuned)
	return ok && p.known.Replayed.Load() == nil && autotune.Taken(units, b.launches[p.first:p.first+p.n])
}

// Part is what ran in part i, for who tells of it.
func (b *Bound) Part(i int) (ops, kernels int, plan string) {
	p := &b.parts[i]
	return len(p.seg.Nodes), p.n, p.known.Plan.Mode.String()
}

// Kernels is the number of launches.
func (b *Bound) Kernels() int { return len(b.launches) }

// put has a run's buffers lie in the launches.
func (b *Bound) put(blocks []*memory.Block) {
	for slot, blk := range blocks {
		if b.at[slot] == blk.Buf {
			continue
		}
		for _, at := range b.places[slot] {
			b.launches[at.Launch].Args[at.Arg].Buf = blk.Buf
		}
		b.at[slot] = blk.Buf
	}
}

// forget lets go of buffers that the next run will hardly have, so that nobody's memory
// is kept alive: of all but the inputs that are written over, as states are.
func (b *Bound) forget(keep []bool) {
	for slot := range b.at {
		if keep[slot] || b.at[slot] == nil {
			continue
		}
		b.at[slot] = nil
		if b.prepared != nil {
			continue // it holds nothing but addresses
		}
		for _, at := range b.places[slot] {
			b.launches[at.Launch].Args[at.Arg].Buf = nil
		}
	}
}

// job is part i as a job of its own, which a Replay runs where something is wrong.
func (b *Bound) job(i int, r *Replay) *Job {
	p := &b.parts[i]
	j := &Job{by: r.by, known: p.known, seg: p.seg, units: p.units, launches: slices.Clone(b.launches[p.first : p.first+p.n]), Mem: make([]*memory.Storage, len(p.mem))}
	for id, at := range p.mem {
		if at.spot < 0 {
			continue
		}
		blk := r.blockAt(at.spot)
		st := &memory.Storage{Block: blk, View: at.view}
		j.Mem[id] = st
		if p.seg.Tensors[id].Def < 0 {
			j.reads = append(j.reads, blk)
		} else if !slices.ContainsFunc(p.known.Plan.Aliases, func(a fusion.Alias) bool { return a.Tensor == id }) {
			j.writes = append(j.writes, blk) // a view of an operand is not written
		}
	}
	return j
}

// run has the device run the list, with the buffers of a run: as it was prepared, else as
// it is. over says which slots are written over inputs: what may run beside what depends
// on that.
func (b *Bound) run(x *Binder, blocks []*memory.Block, over []bool, segment uint64) (err error) {
	defer operror.Recover("run", &err)
	if b.prepared != nil && x.Watched() && b.ran.Due() {
		return b.timed(x, blocks, segment)
	}
	if b.prepared != nil {
		if slices.Equal(over, b.over) && b.set(blocks) {
			done, err := b.ready(x, segment)
			if done {
				return err
			}
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

// timed is a run launch by launch beside the list that is prepared, which stays so: to
// prepare it again takes many times as long as a run, and many runs.
func (b *Bound) timed(x *Binder, blocks []*memory.Block, segment uint64) error {
	list := slices.Clone(b.launches)
	for i := range list {
		list[i].Args = slices.Clone(list[i].Args)
	}
	for slot, blk := range blocks {
		for _, at := range b.places[slot] {
			list[at.Launch].Args[at.Arg].Buf = blk.Buf
		}
	}
	b.tell()
	return x.Launch(list, &b.ran, x.submitter(segment))
}

// tell has the plans count a run for a report.
func (b *Bound) tell() {
	for i := range b.parts {
		b.parts[i].known.List().Elsewhere()
	}
}

// ready runs what was prepared.
func (b *Bound) ready(x *Binder, segment uint64) (done bool, err error) {
	if !x.Watched() {
		return b.prepared.Run()
	}
	start := time.Now()
	if done, err = b.prepared.Run(); done && err == nil {
		b.tell()
		x.Ran(len(b.launches), &b.ran, x.submitter(segment), start)
	}
	return done, err
}

// prepare has the device make the list ready. What it cannot do yet is tried again, less
// and less often.
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

// longestWait is how many runs go by at most before a list is prepared.
const longestWait = 256

// unprepare gives up what the device made ready.
func (b *Bound) unprepare() {
	if b.prepared != nil {
		b.prepared.Close()
		b.prepared = nil
		clear(b.at) // what lies in the launches is of earlier
	}
}

// set has a run's buffers lie in the list that is prepared.
func (b *Bound) set(blocks []*memory.Block) bool {
	for slot, blk := range blocks {
		if b.at[slot] == blk.Buf {
			continue
		}
		if !b.prepared.Set(b.places[slot], blk.Buf) {
			return false
		}
		b.at[slot] = blk.Buf
	}
	return true
}
