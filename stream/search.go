package stream

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// quickEffort is the search that a program waits for: some 150 µs on a current
// core, about what the greedy plan of a long segment takes. A segment whose best
// plan takes more runs by its greedy plan at first. It is counted, not timed: so
// which segments those are depends on the program only.
const quickEffort = 512

// maxSearches bounds the searches that start from one greedy plan: for segments
// that the guards of the better ones found so far do not admit.
const maxSearches = 4

// search is for a better plan than the greedy one a segment ran by.
type search struct {
	at  *leaf
	old *entry
	seg segment.Segment // as its plan is to be explored

	sizes bool // for sizes outside the class of a plan that is the best inside it

	wants []int  // dear results that the plan is to write
	key   string // of the segment in the cache on disk, if there is one
}

// improving is what an entry knows of searches for a better plan.
type improving struct {
	searching atomic.Bool  // one is queued or runs
	searches  atomic.Int32 // that were begun
	settled   atomic.Bool  // nothing better will come, at sizes of its class
	best      atomic.Bool  // the search came to this plan, too
}

// mode is how hard the entry's plan was searched for, by now.
func (e *entry) mode() fusion.Mode {
	if e.best.Load() {
		return fusion.Best
	}
	return e.plan.Mode
}

// grade says how an entry's plan was made and whether it may be replaced.
func (e *entry) grade() string {
	made := e.plan.Mode.String()
	switch {
	case e.searching.Load():
		return made + " while a better one is searched for"
	case e.next.Load() != nil:
		return made + ", replaced since"
	case e.plan.Mode == fusion.Greedy && e.settled.Load():
		return made + ", and nothing better was found"
	}
	return made
}

// searcher looks for better plans in the background, one at a time. Its
// goroutine lives as long as there is work.
type searcher struct {
	dev *Device

	mu      sync.Mutex
	idle    sync.Cond
	queue   []*search
	running bool
	ended   atomic.Bool
}

// maxSearchQueue bounds the segments that wait for a search. One that finds no
// place asks again when its greedy plan is found again.
const maxSearchQueue = 256

func (x *searcher) init(d *Device) {
	x.dev = d
	x.idle.L = &x.mu
}

// waits reports that a program waits for the search of best plans: it was asked
// to, or it waits for compilers or for tuning, or building the kernels of a plan that will be
// replaced would take longer than the search.
func (d *Device) waits() bool {
	o := &d.opts
	return o.Explore == ExploreWait || o.Tune == TuneWait || o.Compile == runtime.CompileWait || o.Tier == TierCompiled || d.caps.SlowBuild
}

// exploreOptions say how a segment that was never seen is explored.
func (d *Device) exploreOptions() fusion.Options {
	opt := fusion.Options{Mode: fusionMode[d.opts.Fusion]}
	if opt.Mode == fusion.Best && !d.waits() {
		opt.Effort = d.quick
	}
	return opt
}

// improvable reports that a search for a better plan than e should begin: e is
// a greedy one, or the segment is outside its class.
func (d *Device) improvable(e *entry, seg *segment.Segment) bool {
	switch {
	case d.opts.Fusion != FusionOn || e.plan.Mode == fusion.Unfused || e.searching.Load():
		return false
	case e.plan.Mode == fusion.Greedy && !e.settled.Load():
		return true
	}
	return !e.suits(seg) && e.others.Load() < maxClasses
}

// improve begins a search, or where the program waits for searches does it; then
// it returns the better plan, if there is one.
func (d *Device) improve(s *search) *entry {
	if s.old.searching.Swap(true) {
		return nil
	}
	if d.waits() {
		return d.search.one(s, nil)
	}
	if !d.search.enqueue(s) {
		s.old.searching.Store(false)
	}
	return nil
}

func (x *searcher) enqueue(s *search) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended.Load() || len(x.queue) == maxSearchQueue {
		return false
	}
	x.queue = append(x.queue, s)
	if !x.running {
		x.running = true
		go x.work()
	}
	return true
}

func (x *searcher) work() {
	for {
		x.mu.Lock()
		if len(x.queue) == 0 || x.ended.Load() {
			x.queue, x.running = nil, false
			x.idle.Broadcast()
			x.mu.Unlock()
			return
		}
		s := x.queue[0]
		x.queue[0] = nil
		x.queue = x.queue[1:]
		x.mu.Unlock()
		x.one(s, x.ended.Load)
	}
}

// one searches, and gives the segment the better plan if there is one.
func (x *searcher) one(s *search, stop func() bool) *entry {
	d := x.dev
	defer s.old.searching.Store(false)
	if s.old.replayed.Load() != nil || !d.trie.Holds(s.at) {
		return nil // nobody uses the plan any more
	}
	ends := func() { s.old.settled.Store(true) }
	if s.sizes = s.old.plan.Mode != fusion.Greedy || s.old.settled.Load(); s.sizes {
		ends = func() { s.old.others.Store(maxClasses) }
		s.old.others.Add(1)
	} else if s.old.searches.Add(1) >= maxSearches {
		ends()
	}
	best, err := d.explore(&s.seg, fusion.Options{Mode: fusion.Best, Stop: stop})
	if err != nil {
		ends()
		if !errors.Is(err, fusion.ErrStopped) && !gone(err) {
			d.stats.fallbacks.Add(1)
			d.onError(err)
		}
		return nil
	}
	best.wants = s.wants
	better, changed := d.replace(s, best)
	if d.cache != nil {
		d.plans.save(saving{s.key, changed, s.wants})
	}
	return better
}

// replace gives a segment a better plan than the one it ran by. A greedy one
// stays behind it where it serves segments that the better one does not, one
// that is best at other sizes always. It returns nil where the old one is as
// good, or is gone; and the entry that what was found is remembered by.
func (d *Device) replace(s *search, best *entry) (better, changed *entry) {
	old := s.old
	if old.plan.Same(best.plan) {
		if s.sizes {
			old.widen(best.plan.Sizes)
		} else {
			old.setClass(best.plan.Sizes)
		}
		old.best.Store(true)
		old.settled.Store(true)
		d.retire(best)
		return nil, old
	}
	gone, covered := best, false // is the better one, or the old one, known no more?
	best.lines, changed = old.lines, best
	best.found.Store(old.found.Load())
	best.others = old.others
	d.trie.Update(s.at, func(plans []*entry) []*entry {
		i := slices.Index(plans, old)
		if i < 0 {
			return plans
		}
		better, gone = best, nil
		for _, e := range plans {
			if e.replayed.Load() == nil && e.plan.Same(best.plan) {
				better, gone = e, best // two streams explored the segment at a time, or one at two sizes
			}
		}
		plans = slices.Clone(plans)
		if better == best {
			plans = slices.Insert(plans, i, best)
			i++
		}
		if covered = !s.sizes && best.plan.Covers(old.plan); covered {
			plans = slices.Delete(plans, i, i+1)
		}
		return plans
	})
	if gone != nil {
		d.retire(gone)
	}
	if covered {
		d.retire(old)
	}
	if better == nil {
		return nil, changed
	}
	if better != best {
		better.widen(best.plan.Sizes)
		changed = better
	}
	if !s.sizes {
		old.next.Store(better)
		if again := old.replayed.Load(); again != nil {
			better.replay(*again)
		}
	}
	return better, changed
}

// wait returns when no search is queued or runs.
func (x *searcher) wait() {
	x.mu.Lock()
	for x.running {
		x.idle.Wait()
	}
	x.mu.Unlock()
}

// stop ends searches and waits for the one that runs.
func (x *searcher) stop() {
	x.ended.Store(true)
	x.wait()
}
