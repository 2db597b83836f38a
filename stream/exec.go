package stream

import (
	"errors"
	"sync"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// executor hands plans to the device in order. A plan that somebody waits for
// runs on the caller's goroutine; one that was cut while recording goes on is
// run by a goroutine that lives as long as there is work.
type executor struct {
	dev *Device

	mu      sync.Mutex
	idle    sync.Cond
	queue   []*job
	running bool
	next    uint64 // number of the job handed out last
	done    uint64 // jobs up to this one have run
}

// job is one plan bound to buffers.
type job struct {
	seq      uint64
	launches []runtime.Launch
	reads    []*block // operands, for faults of earlier jobs
	writes   []*block
	frees    []runtime.Buffer // given back after the job
	alone    func()           // run instead of launches
	units    []unit           // of the launches that have choices

	// What to do when it fails: see failed.
	stream *Stream
	entry  *entry
	seg    *segment.Segment
	mem    []*storage
	lines  []string
}

func (x *executor) init(d *Device) {
	x.dev = d
	x.idle.L = &x.mu
}

// maxQueued bounds how far recording runs ahead of the device: the memory of a
// queued plan is taken already.
const maxQueued = 8

// submit runs a job: at once where wait is set, else in the background.
func (x *executor) submit(j *job, wait bool) {
	x.mu.Lock()
	for !wait && len(x.queue) >= maxQueued {
		x.idle.Wait()
	}
	for wait && x.running { // before numbering: jobs run in the order of their numbers
		x.idle.Wait()
	}
	x.next++
	j.seq = x.next
	for _, b := range j.writes {
		b.seq.Store(j.seq)
	}
	if !wait {
		x.queue = append(x.queue, j)
		if !x.running {
			x.running = true
			go x.work()
		}
		x.mu.Unlock()
		return
	}
	x.running = true
	x.mu.Unlock()
	x.run(j)
	x.finish(j)
}

// work runs queued jobs until there are none.
func (x *executor) work() {
	for {
		x.mu.Lock()
		if len(x.queue) == 0 {
			x.running = false
			x.idle.Broadcast()
			x.mu.Unlock()
			return
		}
		j := x.queue[0]
		x.queue[0] = nil // its blocks must not be held by the list
		x.queue = x.queue[1:]
		x.mu.Unlock()
		x.run(j)
		x.settle(j)
	}
}

// finish ends a job that ran on its caller's goroutine and lets queued ones go.
func (x *executor) finish(j *job) {
	x.settle(j)
	x.mu.Lock()
	if len(x.queue) > 0 {
		go x.work()
	} else {
		x.running = false
	}
	x.idle.Broadcast()
	x.mu.Unlock()
}

func (x *executor) settle(j *job) {
	x.mu.Lock()
	x.done = j.seq
	x.idle.Broadcast()
	frees := j.frees
	x.mu.Unlock()
	for _, b := range frees {
		x.dev.drv.Free(b)
	}
}

// run executes a job. Results of operands that were never written are not
// computed.
func (x *executor) run(j *job) {
	if j.alone != nil {
		j.alone()
		return
	}
	if bad := j.faulty(); bad != nil {
		j.rest(0, bad)
		return
	}
	if len(j.launches) == 0 {
		return
	}
	if err := x.launch(j); err != nil {
		j.failed(err)
	}
}

// launch hands a job to the device. A driver's broken invariant is a fault of
// the job: a panic here would leave the executor busy for ever.
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

// free gives a buffer back once no queued job can still use it.
func (x *executor) free(b runtime.Buffer) {
	x.mu.Lock()
	if n := len(x.queue); n > 0 {
		last := x.queue[n-1]
		last.frees = append(last.frees, b)
		x.mu.Unlock()
		return
	}
	// The job that runs now, if any, was handed the buffer before: wait for it
	// by queueing behind it.
	if x.running {
		x.next++
		x.queue = append(x.queue, &job{seq: x.next, frees: []runtime.Buffer{b}})
		x.mu.Unlock()
		return
	}
	x.mu.Unlock()
	x.dev.drv.Free(b)
}

// wait blocks until the job of this number has run.
func (x *executor) wait(seq uint64) {
	x.mu.Lock()
	for x.done < seq {
		x.idle.Wait()
	}
	x.mu.Unlock()
}

// last is the number of the job handed out last, and whether any is not done.
func (x *executor) last() (seq uint64, busy bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.next, x.running || len(x.queue) > 0
}

// drain blocks until no job is queued or running.
func (x *executor) drain() {
	x.mu.Lock()
	for x.running || len(x.queue) > 0 {
		x.idle.Wait()
	}
	x.mu.Unlock()
}
