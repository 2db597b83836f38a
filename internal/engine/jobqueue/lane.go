package jobqueue

import (
	"sync"
	"sync/atomic"
)

// Lane runs the jobs of one stream, one after another. Lanes run at the same time. Each runs on the
// goroutine of a caller that waits for one of its jobs, else on a goroutine that lives as long as
// there are jobs. A caller waits only for its job, for earlier jobs of that lane, and for the jobs
// that write the operands of these.
type Lane struct {
	exec *Lanes
	Next uint64 // number of the job submitted last; under the stream's lock

	done atomic.Uint64 // jobs up to this number have run

	Mu      sync.Mutex
	Queue   []queued
	room    [4]queued // first memory of Queue, which is often empty
	running bool      // a goroutine runs jobs of the lane
	called  bool      // a goroutine was started that will run the lane unless another one does by then
	waiting []waiter
}

// Job is run once.
type Job interface{ Run() }

// queued is a job and its number.
type queued struct {
	job Job
	seq uint64
}

// NewLane makes another lane.
func (x *Lanes) NewLane() *Lane {
	l := &Lane{exec: x}
	l.Queue = l.room[:0]
	return l
}

// waiter waits for a job to have run.
type waiter struct {
	seq  uint64
	told chan struct{}
}

// Moment is the time at which a job of a lane has run. The zero Moment has passed.
type Moment struct {
	*Lane
	seq uint64
}

// After is the Moment of the lane's job with that number.
func After(l *Lane, seq uint64) Moment { return Moment{l, seq} }

// Passed reports that the job has run.
func (m Moment) Passed() bool { return m.Lane == nil || m.done.Load() >= m.seq }

// Wait returns when the job has run. It runs the earlier jobs of the lane itself unless another
// goroutine does.
func (m Moment) Wait() {
	if !m.Passed() {
		m.Lane.wait(m.seq)
	}
}

// Idle reports that all submitted jobs have run. The caller holds the stream's lock.
func (l *Lane) Idle() bool { return l.done.Load() == l.Next }

// Last is the Moment of the job submitted last. The caller holds the stream's lock.
func (l *Lane) Last() Moment { return Moment{l, l.Next} }

// Queued is the Moment of the last job submitted before the call. It needs no lock.
func (l *Lane) Queued() Moment {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if n := len(l.Queue); n > 0 {
		return Moment{l, l.Queue[n-1].seq}
	}
	if l.running {
		return Moment{l, l.done.Load() + 1}
	}
	return Moment{}
}

// everything is a number greater than that of any job.
const everything = ^uint64(0)

// Submit queues a job behind the others of its lane, with the number that was reserved for it. With
// start the job runs as soon as possible, else when a caller waits for it. The caller holds the
// stream's lock.
func (l *Lane) Submit(j Job, start bool) {
	l.Next++
	l.exec.Submitted.Add(1)
	l.Mu.Lock()
	if len(l.Queue) == cap(l.Queue) {
		l.makeRoom()
	}
	if l.Queue = append(l.Queue, queued{j, l.Next}); !l.running && (start || len(l.waiting) > 0) {
		l.call()
	}
	l.Mu.Unlock()
}

// makeRoom moves the queue to larger memory and clears the old memory. That may be the lane's own
// room, which lives as long as the stream: a reference left there would keep the memory of reused
// jobs alive. The caller holds the lock.
func (l *Lane) makeRoom() {
	moved := make([]queued, len(l.Queue), 2*len(l.Queue)+len(l.room))
	copy(moved, l.Queue)
	clear(l.Queue)
	l.Queue = moved
}

// call starts a goroutine that runs the lane, unless one was started that has not begun. Until it
// begins, a caller that waits for a job runs the lane itself, which is faster than waiting. The
// caller holds the lock.
func (l *Lane) call() {
	if !l.called {
		l.called = true
		go l.goOn()
	}
}

func (l *Lane) wait(seq uint64) {
	l.Mu.Lock()
	for l.done.Load() < seq {
		if !l.running && len(l.Queue) > 0 {
			l.running = true
			l.work(seq)
			l.Mu.Unlock()
			l.exec.giveWay(l)
			l.Mu.Lock()
			continue // jobs up to seq may not be queued yet: a Moment can be known before its job is submitted
		}
		w := waiter{seq, make(chan struct{})}
		l.waiting = append(l.waiting, w)
		l.Mu.Unlock()
		<-w.told
		l.Mu.Lock()
	}
	l.Mu.Unlock()
}

// goOn runs the lane until it is empty, unless another goroutine runs it.
func (l *Lane) goOn() {
	l.Mu.Lock()
	l.called = false
	if !l.running {
		l.running = true
		l.work(everything)
	}
	l.Mu.Unlock()
}

// work runs the lane's jobs up to number seq. If jobs remain, a new goroutine continues. The caller
// holds the lane's lock, which work releases while a job runs.
func (l *Lane) work(seq uint64) {
	for len(l.Queue) > 0 && l.done.Load() < seq {
		next := l.Queue[0]
		l.Queue[0] = queued{}
		if l.Queue = l.Queue[1:]; len(l.Queue) == 0 {
			l.Queue = l.room[:0]
		}
		l.Mu.Unlock()
		next.job.Run()
		l.Mu.Lock()
		l.done.Store(next.seq)
		l.exec.Finished.Add(1)
		if len(l.waiting) > 0 {
			l.tell()
		}
	}
	if l.running = false; len(l.Queue) > 0 {
		l.call()
	}
}

// tell wakes the waiters whose job has run. The caller holds the lock.
func (l *Lane) tell() {
	done, left := l.done.Load(), l.waiting[:0]
	for _, w := range l.waiting {
		if w.seq <= done {
			close(w.told)
		} else {
			left = append(left, w)
		}
	}
	clear(l.waiting[len(left):])
	l.waiting = left
}
