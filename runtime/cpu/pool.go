package cpu

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/label"
	"github.com/millrace-go/millrace/internal/spin"
)

// job is work that is divided into shares. It is a pointer to a long-lived value, so that passing
// it allocates nothing.
type job interface {
	// share does units [begin, end), on thread number who of the pool.
	share(who int, begin, end int64)
}

// pool is a number of threads that do jobs together. The caller of split is thread 0. The others
// are goroutines, started for the first job that is worth them.
//
// A job is open while the generation in state is odd. Threads join an open job by adding one to
// the low bits. The owner closes the job when no unit is left, and waits for the threads that
// joined. A thread that wakes late finds the job closed and touches nothing of it.
type pool struct {
	state atomic.Uint64
	_     [56]byte // gives next, which all threads write, its own cache line
	next  atomic.Int64
	_     [56]byte

	// The current job. Threads other than its owner read it after they have joined.
	job          job
	total, grain int64
	marks        *label.Marks // nil: the job has no label
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
	poolActive     = 0xffff
	poolGeneration = 0x10000
)

// worker is a thread that waits for jobs.
type worker struct {
	parker // asleep, or about to be
	place
	_ [64]byte
}

func newPool(n int) *pool {
	p := &pool{workers: make([]worker, n-1)}
	p.running.Store(1)
	return p
}

// split does units [0, total) of a job in shares of about grain units, on at most n threads and at
// most GOMAXPROCS, and returns when all units are done. Calls must not overlap.
func (p *pool) split(n int, total, grain int64, j job) {
	if total <= 0 {
		return
	}
	if n = min(n, len(p.workers)+1); n > 1 && total > grain {
		n = min(n, goruntime.GOMAXPROCS(0))
	}
	if n <= 1 || total <= grain {
		j.share(0, 0, total)
		return
	}
	p.start(n)
	p.job, p.total, p.grain = j, total, grain
	p.limit.Store(int32(n))
	p.next.Store(0)
	p.at.Store(here())
	p.state.Add(poolGeneration) // open the job
	p.wake(n)
	for p.take(0) {
	}
	p.state.Add(poolGeneration) // close the job
	for w := (spin.Wait{}); p.state.Load()&poolActive != 0; {
		if !w.More() {
			goruntime.Gosched() // other goroutines may need the processor, also one of the pool's
			w = spin.Wait{}
		}
	}
	p.job = nil // keep nothing of a launch
}

// take does a share; it returns false if none is left.
func (p *pool) take(who int) bool {
	begin := p.next.Add(p.grain) - p.grain
	if begin >= p.total {
		return false
	}
	p.job.share(who, begin, min(begin+p.grain, p.total))
	return true
}

// start makes sure that the pool has n threads.
func (p *pool) start(n int) {
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
func (p *pool) wake(n int) {
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

// rouse wakes sleeping threads for a job that will come soon: they spin for a moment, then sleep
// again. It may be called at any time.
func (p *pool) rouse() {
	if p.sleeping.Load() > 0 {
		p.at.Store(here())
		p.wake(min(len(p.workers)+1, goruntime.GOMAXPROCS(0)))
	}
}

// work is the loop of a thread.
func (p *pool) work(who int) {
	defer p.ended.Done()
	w := &p.workers[who-1]
	w.settle()
	for last := uint64(0); ; {
		state, ok := p.await(who, w, last)
		if !ok {
			return
		}
		last = state / poolGeneration
		for state/poolGeneration == last && !p.state.CompareAndSwap(state, state+1) {
			state = p.state.Load()
		}
		if state/poolGeneration != last {
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
func (p *pool) await(who int, w *worker, last uint64) (state uint64, ok bool) {
	opened := func() bool {
		state = p.state.Load()
		return state/poolGeneration != last && state&poolGeneration != 0 && who < int(p.limit.Load())
	}
	for {
		for wait := (spin.Wait{}); ; {
			if opened() {
				return state, true
			}
			if p.quit.Load() {
				return 0, false
			}
			if !wait.More() {
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

// close ends the threads and waits for them.
func (p *pool) close() {
	p.quit.Store(true)
	p.wake(len(p.workers) + 1)
	p.ended.Wait()
}
