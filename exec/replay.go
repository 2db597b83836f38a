package exec

import (
	"errors"
	"sync"

	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/runtime"
)

// Replay is one run of a Bound, as a job of a lane.
type Replay struct {
	b      *Bound
	by     *Binder
	after  []lane.Moment
	blocks []*memory.Block // by slot; the run has a reader of each fresh one until Submit
	over   []bool          // by slot: the run writes it over an input

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
		blk, err := by.Pool.Alloc(f.bytes, true)
		if err != nil {
			r.drop()
			r.recycle()
			return nil, err
		}
		blk.Home = by.Lane
		r.blocks, r.over = append(r.blocks, blk), append(r.over, false)
	}
	for i := range b.fresh {
		blk := r.blocks[b.inputs+i]
		blk.MadeBy(b.fresh[i].by, b.fresh[i].id)
	}
	for _, blk := range r.blocks[:b.inputs] {
		if m := blk.Written(); m.Lane != by.Lane && !m.Passed() {
			r.after = append(r.after, m)
		}
		blk.Hold(by.Lane)
	}
	for _, blk := range r.blocks[b.inputs:] {
		blk.WrittenNext(by.Lane)
	}
	return r, nil
}

// Result returns the memory of result i.
func (r *Replay) Result(i int) *memory.Storage {
	x := &r.b.results[i]
	blk := x.constant
	if x.slot >= 0 {
		blk = r.blocks[x.slot]
	}
	if x.view == nil {
		return &blk.Dense
	}
	return &memory.Storage{Block: blk, View: x.view}
}

// drop drops the run's readers of fresh memory.
func (r *Replay) drop() {
	for _, blk := range r.blocks[min(r.b.inputs, len(r.blocks)):] {
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
	for _, m := range r.after {
		m.Wait()
	}
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
	for _, blk := range r.blocks {
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
func (r *Replay) apart(err error) {
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
		j := b.job(i, r)
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

// blockAt returns the memory of a spot in this run.
func (r *Replay) blockAt(spot int) *memory.Block {
	if slot := r.b.slotOf[spot]; slot >= 0 {
		return r.blocks[slot]
	}
	for _, f := range r.b.fixed {
		if f.spot == spot {
			return f.block
		}
	}
	return nil
}

func (r *Replay) recycle() {
	clear(r.after)
	clear(r.blocks)
	*r = Replay{after: r.after[:0], blocks: r.blocks[:0], over: r.over[:0]}
	replays.Put(r)
}
