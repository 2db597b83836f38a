package exec

import (
	"errors"
	"sync"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Job is one plan bound to buffers, with all that is needed to run it: what the
// stream binds next gets a job of its own.
type Job struct {
	After []lane.Moment // jobs of other lanes that write what it reads

	launches []runtime.Launch
	args     []runtime.Access // of launches
	scalars  []uint64         // of launches
	units    []autotune.Unit  // of the launches that have choices
	reads    []*memory.Block  // operands, for faults of earlier jobs
	writes   []*memory.Block
	Mem      []*memory.Storage // per tensor: operands, and what the plan writes
	Alone    func()            // run instead of launches

	// What to do when it fails: see failed.
	by      *Binder // nil: alone
	segment uint64  // its number on the device
	known   *plans.Known
	seg     segment.Segment
	Lines   []string // where the nodes were recorded, as far as known
}

// jobs are used again.
var jobs = sync.Pool{New: func() any { return new(Job) }}

// MaxQueued bounds how far recording runs ahead of the device: the memory of a
// queued plan is taken already.
const MaxQueued = 8

// hold keeps the memory of a job from the pool until it has run, and notes which
// jobs of other streams come before it. What it writes is there when the lane's next
// job has run. The stream's lock is held.
func (j *Job) hold() {
	l := j.by.Lane
	for _, b := range j.reads {
		if m := b.Written(); m.Lane != l && !m.Passed() {
			j.After = append(j.After, m)
		}
		b.Hold(l)
	}
	for _, b := range j.writes {
		b.WrittenNext(l)
	}
}

// end lets go of what the job used.
func (j *Job) end() {
	if j.by == nil {
		return
	}
	l := j.by.Lane
	for _, b := range j.reads {
		b.Unhold(l)
	}
	for _, b := range j.writes {
		b.Unhold(l)
	}
	j.recycle()
}

// recycle gives the job's own memory to a later one. It must not keep anybody
// else's alive meanwhile.
func (j *Job) recycle() {
	clear(j.After)
	clear(j.reads)
	clear(j.writes)
	clear(j.Mem)
	for i := range j.args {
		j.args[i].Buf, j.args[i].Stages = nil, nil
	}
	for i := range j.launches {
		j.launches[i].Prog, j.launches[i].Chain = nil, nil
	}
	*j = Job{After: j.After[:0], launches: j.launches[:0], args: j.args[:0], scalars: j.scalars[:0], reads: j.reads[:0],
		writes: j.writes[:0], Mem: j.Mem[:0], seg: segment.Segment{Scalars: j.seg.Scalars[:0]}}
	jobs.Put(j)
}

// Run executes the job, once those it depends on have run. Results of operands that
// were never written are not computed.
func (j *Job) Run() {
	for _, m := range j.After {
		m.Wait()
	}
	if j.Alone != nil {
		j.Alone()
	} else {
		j.now(nil)
	}
	j.end()
}

// now runs the launches; where they ran already, err is why that failed.
func (j *Job) now(err error) {
	if err == nil {
		if bad := j.faulty(); bad != nil {
			j.rest(0, bad)
			return
		}
	}
	if len(j.launches) == 0 && err == nil {
		return
	}
	if err = j.launch(err); err != nil {
		j.failed(err)
	}
}

// launch hands a job to the device, or what is left of it after an error. A driver's
// broken invariant is a fault of the job: a panic here would leave its lane busy for ever.
func (j *Job) launch(before error) (err error) {
	defer operror.Recover("run", &err)
	x := j.by
	done := 0
	for {
		if err, before = before, nil; err == nil {
			if err = x.Launch(j.launches[done:], j.known.List(), x.submitter(j.segment)); err == nil {
				return nil
			}
		}
		var at *runtime.LaunchError
		if !errors.As(err, &at) {
			return err
		}
		failed := *at
		failed.Index += done
		toBlame := !device.Gone(err) && !errors.Is(err, ir.ErrIndex)
		if !toBlame || !x.Tune.Retreat(j.launches, j.units, failed.Index) {
			return &failed
		}
		x.Counts.Fallbacks.Add(1)
		x.OnError(err)
		done = failed.Index
	}
}
