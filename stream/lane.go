package stream

import (
	"sync"
	"sync/atomic"
)

// A lane runs the jobs of one stream, one after another. Lanes run at once, each
// on the goroutine of whoever waits for one of its jobs, else on one that lives as
// long as there are jobs. Nobody waits for more than his job, the jobs in front of
// it in its lane, and those that write what these read.
type lane struct {
	exec *executor
	next uint64 // number of the job that was submitted last; under the stream's lock

	done atomic.Uint64 // jobs up to this one have run

	mu      sync.Mutex
	queue   []*job
	room    [4]*job // where queue starts: it is often empty
	running bool    // somebody runs jobs of the lane
	waiting []waiter
}

// waiter is told when a job has run.
type waiter struct {
	seq  uint64
	told chan struct{}
}

// moment is when a job of a lane has run. The zero moment has passed.
type moment struct {
	*lane
	seq uint64
}

func (m moment) passed() bool { return m.lane == nil || m.done.Load() >= m.seq }

// wait returns when the job has run. It runs what is in front of it where nobody
// else does.
func (m moment) wait() {
	if !m.passed() {
		m.lane.wait(m.seq)
	}
}

// last is when the job that was submitted last has run. The stream's lock is held.
func (l *lane) last() moment { return moment{l, l.next} }

// reserved is when the job that will be submitted next has run. The stream's lock
// is held until then.
func (l *lane) reserved() moment { return moment{l, l.next + 1} }

// queued is when all that was submitted by now has run. No lock is needed.
func (l *lane) queued() moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.queue); n > 0 {
		return moment{l, l.queue[n-1].seq}
	}
	if l.running {
		return moment{l, l.done.Load() + 1}
	}
	return moment{}
}

// everything is behind all jobs.
const everything = ^uint64(0)

// submit queues a job behind those of its lane, with the number that was reserved for
// it. Where start is set it runs as soon as it can, else when somebody waits for it.
// The stream's lock is held.
func (l *lane) submit(j *job, start bool) {
	l.next++
	j.seq = l.next
	l.exec.submitted.Add(1)
	l.mu.Lock()
	if l.queue = append(l.queue, j); !l.running && (start || len(l.waiting) > 0) {
		l.running = true
		go l.goOn()
	}
	l.mu.Unlock()
}

func (l *lane) wait(seq uint64) {
	l.mu.Lock()
	for l.done.Load() < seq {
		if !l.running && len(l.queue) > 0 {
			l.running = true
			l.work(seq)
			l.mu.Unlock()
			l.exec.giveWay(l)
			return
		}
		w := waiter{seq, make(chan struct{})}
		l.waiting = append(l.waiting, w)
		l.mu.Unlock()
		<-w.told
		l.mu.Lock()
	}
	l.mu.Unlock()
}

// goOn runs the lane until it is empty.
func (l *lane) goOn() {
	l.mu.Lock()
	l.work(everything)
	l.mu.Unlock()
}

// work runs the lane's jobs up to one. What is left behind it goes on by itself. The
// lane's lock is held, but while a job runs.
func (l *lane) work(seq uint64) {
	for len(l.queue) > 0 && l.done.Load() < seq {
		j := l.queue[0]
		l.queue[0] = nil
		if l.queue = l.queue[1:]; len(l.queue) == 0 {
			l.queue = l.room[:0]
		}
		n := j.seq
		l.mu.Unlock()
		l.exec.run(j)
		l.mu.Lock()
		l.done.Store(n)
		l.exec.finished.Add(1)
		if len(l.waiting) > 0 {
			l.tell()
		}
	}
	if l.running = len(l.queue) > 0; l.running {
		go l.goOn()
	}
}

// tell wakes those whose job has run. The lock is held.
func (l *lane) tell() {
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
