package exec

import (
	"errors"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/runtime"
)

// run is the memory of a run of a Bound.
type run struct {
	b      *Bound
	by     *Binder
	blocks []*memory.Block   // by slot
	over   []bool            // by slot of inputs and fresh: the launches write it over an input
	ends   []jobqueue.Moment // by host op: when it has run; set when it begins
	torn   bool              // the parts run as separate jobs from here on
}

// Replay is one run of a Bound, as a job of a lane for each stretch. Its inputs and results have
// other memory than those of the run before. Until Submit it has a reader of each block of a result.
type Replay struct {
	run
	after []jobqueue.Moment
	next  int // the stretch that runs next

	Segment uint64 // the number of its first segment on the device
}

var replays = sync.Pool{New: func() any { return new(Replay) }}

// Replay begins a run of a claimed Bound with the memory of its inputs. A result may overwrite
// the memory of an input that has no reader but the caller.
func (b *Bound) Replay(by *Binder, inputs []*memory.Storage) (*Replay, error) {
	r := replays.Get().(*Replay)
	r.b, r.by = b, by
	for _, st := range inputs {
		r.blocks, r.over = append(r.blocks, st.Block), append(r.over, false)
	}
	for i := range b.fresh {
		f := &b.fresh[i]
		if f.over >= 0 {
			if blk := r.blocks[f.over]; blk.Refs.Load() == 1 && blk.Quiet(by.Lane) {
				blk.Retain()
				r.blocks, r.over = append(r.blocks, blk), append(r.over, true)
				r.over[f.over] = true
				by.Counts.InPlace.Add(1)
				continue
			}
		}
		blk, err := b.alloc(by, i)
		if err != nil {
			r.drop()
			r.recycle()
			return nil, err
		}
		blk.Home = by.Lane
		r.blocks, r.over = append(r.blocks, blk), append(r.over, false)
	}
	r.made()
	for _, blk := range r.blocks[:b.inputs] {
		if m := blk.Written(); m.Lane != by.Lane && !m.Passed() {
			r.after = append(r.after, m)
		}
		blk.Hold(by.Lane)
	}
	for _, blk := range r.blocks[b.inputs:] {
		blk.WrittenIn(by.Lane, len(b.stretches))
	}
	r.blocks = append(r.blocks, b.still...)
	r.ends = append(r.ends, make([]jobqueue.Moment, len(b.hosts))...)
	return r, nil
}

// alloc allocates fresh memory i. On some devices it returns to the same result in a later run.
func (b *Bound) alloc(by *Binder, i int) (*memory.Block, error) {
	if b.homes != nil {
		return by.Pool.Take(b.homes[i].Alloc, b.fresh[i].bytes, true)
	}
	return by.Pool.Alloc(b.fresh[i].bytes, true)
}

// made notes which plans write the results.
func (r *run) made() {
	for i, f := range r.b.fresh {
		made(r.blocks[r.b.inputs+i], f.by, f.id)
	}
}

// made notes which plan writes a block; nil for a host op.
func made(blk *memory.Block, by *planstore.Known, id int32) {
	if by != nil {
		blk.MadeBy(by, id)
	}
}

// Result returns the memory of result i.
func (r *run) Result(i int) *memory.Storage {
	x := &r.b.results[i]
	blk := r.blocks[x.slot]
	if x.view == nil {
		return &blk.Dense
	}
	return &memory.Storage{Block: blk, View: x.view}
}

// drop drops the run's readers of fresh memory.
func (r *Replay) drop() {
	for _, blk := range r.blocks[r.b.inputs:min(len(r.b.places), len(r.blocks))] {
		blk.Release()
	}
}

// Submit queues the run, and begins its host ops: they run in the order of submission, behind those
// of earlier runs. By then the results have readers of their own.
func (r *Replay) Submit(start bool) {
	r.drop()
	b, l := r.b, r.by.Lane
	for i := range b.stretches { // r may end at once when its last stretch is submitted
		l.Submit(r, start)
		if len(b.stretches[i].begins) > 0 {
			r.begin(i, l.Last())
		}
	}
}

// Run executes the next stretch; the lane calls it.
func (r *Replay) Run() {
	b := r.b
	if r.next == 0 {
		await(r.by, r.after)
		r.start()
		for _, blk := range r.blocks[:b.inputs] {
			if blk.Fault.Load() != nil {
				r.tear()
				break
			}
		}
	}
	_ = r.stretch(r.next, r.Segment) // results have the error
	if r.next++; r.next < len(b.stretches) {
		return
	}
	for s := range b.sections {
		s.forget(r.over)
	}
	l := r.by.Lane
	for _, blk := range r.blocks[:len(b.places)] {
		blk.Unhold(l)
	}
	r.recycle()
	ended := b.Ended
	b.Unclaim()
	ended()
}

// start forgets the faults of an earlier run's intermediate results.
func (r *run) start() {
	if r.b.torn {
		for _, own := range r.b.own {
			own.Fault.Store(nil)
		}
		r.b.torn = false
	}
}

// stretch runs a stretch, and returns the first error. If a launch or a host op fails, what
// remains of the run is separate jobs, so each fault marks only the results that depend on it.
func (r *run) stretch(i int, segment uint64) (err error) {
	b := r.b
	st := &b.stretches[i]
	if r.torn {
		r.apart(i, st.first, nil, 0)
	}
	for _, s := range st.sections {
		if r.torn {
			break
		}
		if bad := r.await(s.waits); bad != nil {
			r.tear()
			r.resume(i, s, nil)
			err = bad
		} else if err = s.run(r, segment); err != nil {
			r.tear()
			r.resume(i, s, err)
		}
	}
	if r.torn {
		r.awaitAll(i)
	}
	return err
}

// tear makes what remains of the run separate jobs. The Bound must not run again.
func (r *run) tear() {
	b := r.b
	b.mu.Lock()
	b.spoilt = true
	b.mu.Unlock()
	b.unprepare()
	b.put(r.blocks)
	b.torn, r.torn = true, true
}

// resume continues a stretch whose section failed with err, or for which a host op made no
// operand if err is nil.
func (r *run) resume(i int, s *section, err error) {
	b, at := r.b, s.first
	var failed *runtime.LaunchError
	known := errors.As(err, &failed)
	if known {
		at += failed.Index
	}
	if at >= b.copiesFrom() { // copies run again
		return
	}
	p := b.stretches[i].first
	for p+1 < b.stretches[i].end && at >= b.parts[p+1].first {
		p++
	}
	step := at - b.parts[p].first
	switch {
	case known:
		r.apart(i, p, &runtime.LaunchError{Index: step, Err: failed.Err}, 0)
	case err == nil:
		r.apart(i, p, nil, step)
	default: // it is unknown which launches of the section ran
		end := p
		for end < b.stretches[i].end && b.parts[end].first < s.first+s.n {
			r.part(i, end).now(err)
			end++
		}
		r.apart(i, end, nil, 0)
	}
}

// apart runs the parts of a stretch from a part on as separate jobs. err is the failure of the
// first one's launch, and its launches before step have run. The job of a failed part computes its
// operations one by one.
func (r *run) apart(i, from int, err error, step int) {
	for p := from; p < r.b.stretches[i].end; p++ {
		j := r.part(i, p)
		if bad := j.faulty(); p == from && step > 0 && bad != nil {
			j.rest(step, bad)
		} else if p == from {
			j.now(err)
		} else {
			j.now(nil)
		}
	}
}

// part returns part p of stretch i as a Job whose operands are in memory or have a fault.
func (r *run) part(i, p int) *Job {
	r.awaitAll(i)
	j := r.job(p)
	if j.faulty() == nil {
		for _, w := range j.writes {
			w.Fault.Store(nil) // faults of the block's earlier contents
		}
	}
	return j
}

// job returns part i as a Job.
func (r *run) job(i int) *Job {
	p := &r.b.parts[i]
	j := &Job{by: r.by, known: p.known, seg: p.seg, units: p.units, launches: slices.Clone(r.b.launches[p.first : p.first+p.n]), Mem: make([]*memory.Storage, len(p.mem))}
	for id, at := range p.mem {
		if at.slot < 0 {
			continue
		}
		blk := r.blocks[at.slot]
		j.Mem[id] = &memory.Storage{Block: blk, View: at.view}
		if p.seg.Tensors[id].Def < 0 {
			j.reads = append(j.reads, blk)
		} else if !slices.ContainsFunc(p.known.Plan.Aliases, func(a fusion.Alias) bool { return a.Tensor == id }) {
			j.writes = append(j.writes, blk) // a view of an operand is not written
		}
	}
	return j
}

func (r *Replay) recycle() {
	clear(r.after)
	clear(r.blocks)
	clear(r.ends)
	*r = Replay{run: run{blocks: r.blocks[:0], over: r.over[:0], ends: r.ends[:0]}, after: r.after[:0]}
	replays.Put(r)
}
