package stream

import (
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// executor hands plans to the device: those of a stream in order, those of
// several streams at once. The device decides how its threads are shared.
type executor struct {
	dev *Device

	submitted, finished atomic.Uint64 // jobs of all lanes

	waited atomic.Pointer[lane] // whose job somebody ran for himself last
	many   atomic.Int32         // for so many more such jobs several lanes are in use
}

// manyFor is how long one lane must be alone before others are not expected.
const manyFor = 64

// giveWay lets other goroutines run, where several streams are in use, when one has
// run a job for itself: a server's requests are short, and Go would let one goroutine
// make hundreds of them before the next one has its turn.
func (x *executor) giveWay(l *lane) {
	if x.waited.Load() != l {
		x.waited.Store(l)
		x.many.Store(manyFor)
	} else if x.many.Load() > 0 {
		x.many.Add(-1)
	}
	if x.many.Load() > 0 {
		goruntime.Gosched()
	}
}

// job is one plan bound to buffers, with all that is needed to run it: what the
// stream binds next gets a job of its own.
type job struct {
	seq   uint64
	after []moment // jobs of other lanes that write what it reads

	launches []runtime.Launch
	args     []runtime.Access // of launches
	scalars  []uint64         // of launches
	units    []unit           // of the launches that have choices
	reads    []*block         // operands, for faults of earlier jobs
	writes   []*block
	mem      []*storage // per tensor: operands, and what the plan writes
	alone    func()     // run instead of launches

	// What to do when it fails: see failed.
	stream *Stream
	entry  *entry
	seg    segment.Segment
	lines  []string
}

// jobs are used again.
var jobs = sync.Pool{New: func() any { return new(job) }}

// maxQueued bounds how far recording runs ahead of the device: the memory of a
// queued plan is taken already.
const maxQueued = 8

// hold keeps the memory of a job from the pool until it has run, and notes which
// jobs of other streams come before it. What it writes is there when the lane's next
// job has run. The stream's lock is held.
func (j *job) hold(l *lane) {
	for _, b := range j.reads {
		if m := b.written(); m.lane != l && !m.passed() {
			j.after = append(j.after, m)
		}
		b.hold(l)
	}
	for _, b := range j.writes {
		b.hold(l)
		b.writer.Store(l)
		b.seq.Store(l.next + 1)
	}
}

// end lets go of what the job used.
func (j *job) end() {
	if j.stream == nil {
		return
	}
	l := j.stream.lane
	for _, b := range j.reads {
		b.unhold(l)
	}
	for _, b := range j.writes {
		b.unhold(l)
	}
	j.recycle()
}

// recycle gives the job's own memory to a later one. It must not keep anybody
// else's alive meanwhile.
func (j *job) recycle() {
	clear(j.after)
	clear(j.reads)
	clear(j.writes)
	clear(j.mem)
	for i := range j.args {
		j.args[i].Buf, j.args[i].Stages = nil, nil
	}
	for i := range j.launches {
		j.launches[i].Prog, j.launches[i].Chain = nil, nil
	}
	*j = job{after: j.after[:0], launches: j.launches[:0], args: j.args[:0], scalars: j.scalars[:0], reads: j.reads[:0],
		writes: j.writes[:0], mem: j.mem[:0], seg: segment.Segment{Scalars: j.seg.Scalars[:0]}}
	jobs.Put(j)
}

// run executes a job, once those it depends on have run. Results of operands that
// were never written are not computed.
func (x *executor) run(j *job) {
	for _, m := range j.after {
		m.wait()
	}
	if j.alone != nil {
		j.alone()
	} else if bad := j.faulty(); bad != nil {
		j.rest(0, bad)
	} else if len(j.launches) > 0 {
		if err := x.launch(j); err != nil {
			j.failed(err)
		}
	}
	j.end()
}

// launch hands a job to the device. A driver's broken invariant is a fault of
// the job: a panic here would leave its lane busy for ever.
func (x *executor) launch(j *job) (err error) {
	defer recoverBug("run", &err)
	done := 0
	for {
		if err = x.dev.drv.Run(j.launches[done:]); err == nil {
			return nil
		}
		var at *runtime.LaunchError
		if !errors.As(err, &at) {
			return err
		}
		failed := *at
		failed.Index += done
		toBlame := !gone(err) && !errors.Is(err, ir.ErrIndex)
		if !toBlame || !x.dev.tune.retreat(j.launches, j.units, failed.Index) {
			return &failed
		}
		x.dev.stats.fallbacks.Add(1)
		x.dev.onError(err)
		done = failed.Index
	}
}

// last is the number of jobs that were submitted, and whether any has not run.
func (x *executor) last() (seq uint64, busy bool) {
	done := x.finished.Load() // first: or what ends meanwhile would not count as begun
	seq = x.submitted.Load()
	return seq, seq != done
}

// drain returns when all that was submitted by now has run.
func (x *executor) drain() {
	for _, s := range x.dev.open.list() {
		s.lane.queued().wait()
	}
}
