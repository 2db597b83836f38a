package threads

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/proflabel"
)

// Job is work that is divided into shares. Callers pass a pointer to a long-lived value, which
// allocates nothing.
type Job interface {
	// Share does units [begin, end), on thread number who of the pool.
	Share(who int, begin, end int64)
}

// Pool is a number of threads that do jobs together. The caller of Split is thread 0. The others
// are goroutines, started for the first job that is worth them.
//
// A job is open while the generation in state is odd. Threads join an open job by adding one to
// the low bits. The owner closes the job when no unit is left, and waits for the threads that
// joined. A thread that wakes late finds the job closed and touches nothing of it.
type Pool struct {
	state atomic.Uint64
	_     [56]byte // gives next, which all threads write, its own cache line
	next  atomic.Int64
	_     [56]byte

	// The current job. Threads other than its owner read it after they have joined.
	job          Job
	total, grain int64
	marks        *proflabel.Marks // nil: the job has no label
	mark         any

	limit    atomic.Int32 // number of threads of the job
	at       atomic.Int32 // processor of the last job's owner, plus one; 0: unknown
	running  atomic.Int32 // number of started threads, including the owner
	sleeping atomic.Int32
	quit     atomic.Bool
	places   places
	workers  []worker // threads 1 and up
	ended    sync.WaitGroup
}

const (
	active     = 0xffff
	generation = 0x10000
)

// worker is a thread that waits for jobs.
type worker struct {
	parker // asleep, or about to be
	place
	_ [64]byte
}

// NewPool returns a pool of n threads, the caller of Split included.
func NewPool(n int) *Pool {
	p := &Pool{workers: make([]worker, n-1)}
	p.running.Store(1)
	return p
}

// Split does units [0, total) of a job in shares of about grain units, on at most n threads and at
// most GOMAXPROCS, and returns when all units are done. Calls must not overlap.
func (p *Pool) Split(n int, total, grain int64, j Job) {
	if total <= 0 {
		return
	}
	if n = min(n, len(p.workers)+1); n > 1 && total > grain {
		n = min(n, goruntime.GOMAXPROCS(0))
	}
	if n <= 1 || total <= grain {
		j.Share(0, 0, total)
		return
	}
	p.start(n)
	p.job, p.total, p.grain = j, total, grain
	p.limit.Store(int32(n))
	p.next.Store(0)
	p.at.Store(here())
	p.state.Add(generation) // open the job
	p.wake(n)
	for p.take(0) {
	}
	p.state.Add(generation) // close the job
	for w := (spin{}); p.state.Load()&active != 0; {
		if !w.more() {
			goruntime.Gosched() // other goroutines may need the processor, also one of the pool's
			w = spin{}
		}
	}
	p.job = nil // keep nothing of a launch
}

// Threads returns the number of threads, the caller of Split included.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Label sets the profiler label of the threads that do the next jobs; m is nil for none.
func (p *Pool) Label(m *proflabel.Marks, mark any) { p.marks, p.mark = m, mark }

// Started returns the number of threads that have started, including the caller of split.
func (p *Pool) Started() int { return int(p.running.Load()) }

// take does a share; it returns false if none is left.
func (p *Pool) take(who int) bool {
	begin := p.next.Add(p.grain) - p.grain
	if begin >= p.total {
		return false
	}
	p.job.Share(who, begin, min(begin+p.grain, p.total))
	return true
}

// start makes sure that the pool has n threads.
func (p *Pool) start(n int) {
	if int(p.running.Load()) < n {
		p.places.find()
	}
	for who := int(p.running.Load()); who < n; who++ {
		p.ended.Add(1)
		p.running.Add(1)
		go p.work(who)
	}
}

// wake wakes the sleeping ones of the first n threads.
func (p *Pool) wake(n int) {
	if p.sleeping.Load() == 0 {
		return
	}
	at, moved := p.at.Load(), p.places.find()
	for i := range p.workers[:min(n, int(p.running.Load()))-1] {
		w := &p.workers[i]
		if w.claim() {
			p.sleeping.Add(-1)
			w.keepOff(&p.places, at, moved)
			w.wake()
		}
	}
}

// Rouse wakes sleeping threads for a job that will come soon: they spin for a moment, then sleep
// again. It may be called at any time.
func (p *Pool) Rouse() {
	if p.sleeping.Load() > 0 {
		p.at.Store(here())
		p.wake(min(len(p.workers)+1, goruntime.GOMAXPROCS(0)))
	}
}

// work is the loop of a thread.
func (p *Pool) work(who int) {
	defer p.ended.Done()
	w := &p.workers[who-1]
	w.settle()
	for last := uint64(0); ; {
		state, ok := p.await(who, w, last)
		if !ok {
			return
		}
		last = state / generation
		for state/generation == last && !p.state.CompareAndSwap(state, state+1) {
			state = p.state.Load()
		}
		if state/generation != last {
			continue // closed meanwhile
		}
		m := p.marks
		if m != nil {
			m.Set(p.mark)
		}
		if who < int(p.limit.Load()) && p.take(who) {
			w.comeBack(&p.places)
			for p.take(who) {
			}
		}
		if m != nil {
			m.Set(nil)
		}
		p.state.Add(^uint64(0))
	}
}

// await waits for a job other than the last one; it spins for a moment and then sleeps. It returns
// false when the pool is closed. Jobs do not keep threads beyond their limit awake.
func (p *Pool) await(who int, w *worker, last uint64) (state uint64, ok bool) {
	opened := func() bool {
		state = p.state.Load()
		return state/generation != last && state&generation != 0 && who < int(p.limit.Load())
	}
	for {
		for wait := (spin{}); ; {
			if opened() {
				return state, true
			}
			if p.quit.Load() {
				return 0, false
			}
			if !wait.more() {
				break
			}
		}
		w.keepOff(&p.places, p.at.Load(), false)
		w.prepare()
		p.sleeping.Add(1)
		if (opened() || p.quit.Load()) && w.cancel() { // the owner opened the job before it could see this thread sleep
			p.sleeping.Add(-1)
			continue
		}
		w.park()
	}
}

// Close ends the threads and waits for them.
func (p *Pool) Close() {
	p.quit.Store(true)
	p.wake(len(p.workers) + 1)
	p.ended.Wait()
}
