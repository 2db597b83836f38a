package cpu

import (
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/runtime"
)

// crew is a set of threads that run launches together. A device has crews of all its threads, for
// launches that are worth it. It also has crews of the calling thread alone, for small launches
// and for runs beside others: runs that share the processors are faster on one thread each than
// with waits for other threads at the end of each launch.
type crew struct {
	exec  *executor
	solos []*solo // of chains, one for each thread
}

const (
	// maxWide is how many crews of all threads may run at once. A run of many launches lets others
	// in between its launches, and a run of few does not delay the first few others that arrive.
	maxWide = 4
	// ownWork is the time, in nanoseconds, up to which launches run on the calling thread alone
	// while others run too.
	ownWork = 1e6
	// crowdFor is how many runs must pass alone before other runs are no longer expected: a
	// program records operations between two runs.
	crowdFor = 32
	// turnWork is the time, in nanoseconds, after which a run of several launches passes the crew
	// to waiting runs.
	turnWork = 4e6
)

// crews lends crews of one size. Runs that wait for a crew get one in order of arrival.
type crews struct {
	threads int
	open    func(threads int) *executor
	slots   chan struct{}
	waiting atomic.Int32

	mu   sync.Mutex
	free []*crew // the most recently used crew is last
	all  []*crew
}

func newCrews(threads, most int, open func(threads int) *executor) *crews {
	return &crews{threads: threads, open: open, slots: make(chan struct{}, most)}
}

// lend waits for a crew and returns it; giveBack ends the loan.
func (c *crews) lend() *crew {
	select {
	case c.slots <- struct{}{}:
	default:
		c.waiting.Add(1)
		c.slots <- struct{}{}
		c.waiting.Add(-1)
	}
	return c.take()
}

// tryLend is lend without waiting: it returns nil if no crew is free.
func (c *crews) tryLend() *crew {
	select {
	case c.slots <- struct{}{}:
	default:
		return nil
	}
	return c.take()
}

// take finds or makes a crew for a slot.
func (c *crews) take() *crew {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		w := c.free[n-1]
		c.free = c.free[:n-1]
		return w
	}
	w := &crew{exec: c.open(c.threads)}
	c.all = append(c.all, w)
	return w
}

func (c *crews) giveBack(w *crew) {
	c.mu.Lock()
	c.free = append(c.free, w)
	c.mu.Unlock()
	<-c.slots
}

// rouse wakes the threads of the crew that will be lent next.
func (c *crews) rouse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		c.free[n-1].exec.rouse()
	}
}

// close ends all crews. No crew may be lent any more.
func (c *crews) close() {
	for _, w := range c.all {
		w.exec.close()
		for _, s := range w.solos {
			s.exec.close()
		}
	}
}

// crowd tells a run whether other runs share the processors.
type crowd struct {
	running atomic.Int32
	seen    atomic.Int32 // number of further runs that still expect others
}

// enter begins a run, and reports whether others run, or did so recently.
func (c *crowd) enter() bool {
	if c.running.Add(1) > 1 {
		c.seen.Store(crowdFor)
		return true
	}
	if c.seen.Load() > 0 {
		return c.seen.Add(-1) >= 0
	}
	return false
}

func (c *crowd) leave() { c.running.Add(-1) }

// Estimates of the work that one thread does in a nanosecond.
const (
	bytesPerNano = 8
	mulsPerNano  = 20
)

// workOf estimates, before a launch is prepared, how many nanoseconds it takes on one thread, and
// whether it is worth several threads.
func workOf(l *runtime.Launch) (nanos int64, several bool) {
	p, ok := l.Prog.(*program)
	if !ok || l.Rank > runtime.MaxRank {
		return 0, false // an error that prepareFor reports
	}
	points := int64(1)
	for _, n := range l.Dims[:max(l.Rank, 0)] {
		points *= n
	}
	if p.parts != nil {
		return points / mulsPerNano, points >= threadMuls
	}
	return points * p.perItem / bytesPerNano, points*p.perItem >= threadBytes
}

// forOne reports that a list runs on the calling thread alone.
func forOne(list []runtime.Launch, crowded bool) bool {
	work, worth := int64(0), false
	for i := range list {
		nanos, several := workOf(&list[i])
		work += nanos
		worth = worth || several
	}
	return alone(work, worth, crowded)
}

// alone is forOne of a list with that much work, in nanoseconds; worth says that some launch is
// worth several threads.
func alone(work int64, worth, crowded bool) bool {
	if worth {
		return crowded && work <= ownWork
	}
	return work <= turnWork
}

// run runs launches on a crew, and passes the crew to waiting runs between launches. *w may be a
// different crew afterwards.
func (c *crews) run(w **crew, list []ready) error {
	for len(list) > 0 {
		n, work := 0, int64(0)
		for ; n < len(list) && (n == 0 || work < turnWork); n++ {
			nanos, _ := workOf(list[n].l)
			work += nanos
		}
		if err := (*w).exec.run(list[:n]); err != nil {
			return err
		}
		if list = list[n:]; len(list) > 0 && c.waiting.Load() > 0 {
			c.giveBack(*w)
			*w = c.lend()
		}
	}
	return nil
}
