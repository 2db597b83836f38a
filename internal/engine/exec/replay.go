package exec

import (
	"errors"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/runtime"
)

// run is the memory of a run of a Bound.
type run struct {
	b      *Bound
	by     *Binder
	blocks []*memory.Block // by slot
	over   []bool          // by slot of inputs and fresh: the launches write it over an input
}

// Replay is one run of a Bound, as a job of a lane. Its inputs and results have other memory than
// those of the run before. Until Submit it has a reader of each block of a result.
type Replay struct {
	run
	after []jobqueue.Moment

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
		blk.WrittenNext(by.Lane)
	}
	r.blocks = append(r.blocks, b.still...)
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
		r.blocks[r.b.inputs+i].MadeBy(f.by, f.id)
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

// Submit queues the run. By then the results have readers of their own.
func (r *Replay) Submit(start bool) {
	r.drop()
	r.by.Lane.Submit(r, start)
}

// Run executes the run; the lane calls it.
func (r *Replay) Run() {
	await(r.by, r.after)
	b := r.b
	bad := false
	for _, blk := range r.blocks[:b.inputs] {
		bad = bad || blk.Fault.Load() != nil
	}
	if bad {
		r.apart(nil)
	} else if err := b.run(r.by, r.blocks, r.over, r.Segment); err != nil {
		r.apart(err)
	}
	b.forget(r.over)
	l := r.by.Lane
	for _, blk := range r.blocks[:len(b.places)] {
		blk.Unhold(l)
	}
	r.recycle()
	ended := b.Ended
	b.Unclaim()
	ended()
}

// apart runs the parts as separate jobs: all parts if an input is missing, else those from the
// part of the failed launch on. The job of a failed part computes its operations one by one, and
// each fault marks only the results that depend on it.
func (r *run) apart(err error) {
	b := r.b
	b.mu.Lock()
	b.spoilt = true
	b.mu.Unlock()
	b.unprepare()
	b.put(r.blocks)
	for _, own := range b.own {
		own.Fault.Store(nil) // faults of an earlier run
	}
	from, known := 0, false
	var at *runtime.LaunchError
	if errors.As(err, &at) {
		for from+1 < len(b.parts) && at.Index >= b.parts[from+1].first {
			from++
		}
		err, known = &runtime.LaunchError{Index: at.Index - b.parts[from].first, Err: at.Err}, true
	}
	for i := from; i < len(b.parts); i++ {
		j := r.job(i)
		if j.faulty() == nil {
			for _, w := range j.writes {
				w.Fault.Store(nil) // faults of the block's earlier contents
			}
		}
		j.now(err)
		if known { // else it is unknown which launches ran
			err = nil
		}
	}
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
	*r = Replay{run: run{blocks: r.blocks[:0], over: r.over[:0]}, after: r.after[:0]}
	replays.Put(r)
}
