package lane

import (
	"sync"
	"sync/atomic"
)

// Lane runs the jobs of one stream, one after another. Lanes run at once, each
// on the goroutine of whoever waits for one of its jobs, else on one that lives as
// long as there are jobs. Nobody waits for more than his job, the jobs in front of
// it in its lane, and those that write what these read.
type Lane struct {
	exec *Lanes
	Next uint64 // number of the job that was submitted last; under the stream's lock

	done atomic.Uint64 // jobs up to this one have run

	Mu      sync.Mutex
	Queue   []queued
	room    [4]queued // where queue starts: it is often empty
	running bool      // somebody runs jobs of the lane
	called  bool      // a goroutine was started that will, where nobody does by then
	waiting []waiter
}

// Job is a job: what runs it, once.
type Job interface{ Run() }

// queued is a job and its number.
type queued struct {
	job Job
	seq uint64
}

// NewLane is one more lane.
func (x *Lanes) NewLane() *Lane {
	l := &Lane{exec: x}
	l.Queue = l.room[:0]
	return l
}

// waiter is told when a job has run.
type waiter struct {
	seq  uint64
	told chan struct{}
}

// Moment is when a job of a lane has run. The zero moment has passed.
type Moment struct {
	*Lane
	seq uint64
}

// After is when the lane's job of that number has run.
func After(l *Lane, seq uint64) Moment { return Moment{l, seq} }

// Passed says that it is over.
func (m Moment) Passed() bool { return m.Lane == nil || m.done.Load() >= m.seq }

// Wait returns when the job has run. It runs what is in front of it where nobody
// else does.
func (m Moment) Wait() {
	if !m.Passed() {
		m.Lane.wait(m.seq)
	}
}

// Idle says that all that was submitted has run. The stream's lock is held.
func (l *Lane) Idle() bool { return l.done.Load() == l.Next }

// Last is when the job that was submitted last has run. The stream's lock is held.
func (l *Lane) Last() Moment { return Moment{l, l.Next} }

// reserved is when the job that will be submitted next has run. The stream's lock
// is held until then.
func (l *Lane) reserved() Moment { return Moment{l, l.Next + 1} }

// Queued is when all that was submitted by now has run. No lock is needed.
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

// everything is behind all jobs.
const everything = ^uint64(0)

// Submit queues a job behind those of its lane, with the number that was reserved for
// it. Where start is set it runs as soon as it can, else when somebody waits for it.
// The stream's lock is held.
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

// makeRoom moves the queue to where more jobs fit behind it. Where they were they must not
// stay: that may be the lane's own room, which lasts as long as the stream, and whoever uses
// a job again would have its memory kept alive from there. The lock is held.
func (l *Lane) makeRoom() {
	moved := make([]queued, len(l.Queue), 2*len(l.Queue)+len(l.room))
	copy(moved, l.Queue)
	clear(l.Queue)
	l.Queue = moved
}

// call starts a goroutine that runs the lane, unless one was started that has not begun.
// Until it has, whoever waits for a job runs it: that takes less than waiting. The lock
// is held.
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
			continue // what is in front may be all there is: a job is known before it is queued
		}
		w := waiter{seq, make(chan struct{})}
		l.waiting = append(l.waiting, w)
		l.Mu.Unlock()
		<-w.told
		l.Mu.Lock()
	}
	l.Mu.Unlock()
}

// goOn runs the lane until it is empty, unless somebody runs it.
func (l *Lane) goOn() {
	l.Mu.Lock()
	l.called = false
	if !l.running {
		l.running = true
		l.work(everything)
	}
	l.Mu.Unlock()
}

// work runs the lane's jobs up to one. What is left behind it goes on by itself. The
// lane's lock is held, but while a job runs.
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

// tell wakes those whose job has run. The lock is held.
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
