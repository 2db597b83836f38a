package exec

import (
	"errors"
	"sync"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Job is one plan bound to buffers, with all that its run needs. The next segment of the stream
// gets another Job.
type Job struct {
	After []jobqueue.Moment // the jobs of other lanes that write its operands

	launches []runtime.Launch
	args     []runtime.Access // the launches' Args are slices of it
	scalars  []uint64         // the launches' Scalars are slices of it
	units    []autotune.Unit  // the tuning units of the launches that have choices
	reads    []*memory.Block  // operands; their blocks carry the faults of earlier jobs
	writes   []*memory.Block
	Mem      []*memory.Storage // by tensor: operands and written results
	Alone    func()            // if set, Run calls it and runs no launches

	// For failed:
	by      *Binder // nil for a job that has only Alone
	segment uint64  // the segment's number on the device
	known   *planstore.Known
	seg     segment.Segment
	Lines   []string // source lines of the nodes, where known
}

// jobs holds Jobs for reuse.
var jobs = sync.Pool{New: func() any { return new(Job) }}

// MaxQueued limits how many jobs recording may be ahead of the device: a queued plan already
// has its memory.
const MaxQueued = 8

// hold keeps the job's memory from being reused by the pool until the job has run, and lists the
// jobs of other lanes that must run before. The results are complete when the lane's next job has
// run. The caller holds the stream's lock.
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

// end releases the job's memory and recycles the job.
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

// recycle puts the Job into the pool with its slices. It clears them first, so that the pooled
// Job keeps no other object alive.
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

// Run waits for the jobs in After and executes the job. It computes no results whose operands
// were never written.
func (j *Job) Run() {
	await(j.by, j.After)
	if j.Alone != nil {
		j.Alone()
	} else {
		j.now(nil)
	}
	j.end()
}

// await waits for jobs of other lanes. The report shows the wait in the row of the stream, of which
// x is the Binder, if known.
func await(x *Binder, list []jobqueue.Moment) {
	for _, m := range list {
		if m.Passed() {
			continue
		}
		if x == nil || x.Profile == nil {
			m.Wait()
			continue
		}
		start := time.Now()
		m.Wait()
		x.Profile.Tell(profile.Span{Row: profile.Row(x.Number), Kind: profile.Wait, Start: start, Took: time.Since(start), Of: -1})
	}
}

// now runs the launches. A non-nil err is the failure of a run that already took place.
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

// launch runs the job's launches on the device. After an error that another choice may avoid, it
// runs the remaining launches with that choice. It turns a panic of a driver into an error, since
// the panic would leave the lane busy for ever.
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
