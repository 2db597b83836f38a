package planstore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// QuickEffort limits the search for which a program waits, to about 150 µs on a current core. The
// greedy plan of a long segment takes about as long. A segment whose best plan takes more effort
// first runs by its greedy plan. Effort is counted, not timed, so the result depends on the
// program only.
const QuickEffort = 512

// maxSearches limits the searches that start from one greedy plan. A further one starts when a
// segment does not pass the guards of the better plans found so far.
const maxSearches = 4

// search is a search for a better plan than the one by which a segment ran.
type search struct {
	at  *leaf
	old *Known
	seg segment.Segment // in the state in which its plan is explored

	sizes bool // the search is for sizes outside the class of old, which is the best plan inside it

	wants []int  // costly results that the plan must write
	key   string // the segment's key in the cache on disk; "" without a cache
}

// improving is the state of the searches for a better plan.
type improving struct {
	Searching atomic.Bool  // a search is queued or running
	searches  atomic.Int32 // number of searches begun
	settled   atomic.Bool  // no better plan can be found for sizes of its class
	best      atomic.Bool  // a search for the best plan found this same plan
}

// mode returns the mode of the most thorough search that found this plan so far.
func (e *Known) mode() fusion.Mode {
	if e.best.Load() {
		return fusion.Best
	}
	return e.Plan.Mode
}

// grade says how the plan was made and whether it may be replaced.
func (e *Known) grade() string {
	made := e.Plan.Mode.String()
	switch {
	case e.unbuilt != nil:
		return fmt.Sprintf("%s, as the plan that fuses could not be built: %v", made, e.unbuilt)
	case e.Searching.Load():
		return made + " while a better one is searched for"
	case e.Next.Load() != nil:
		return made + ", replaced since"
	case e.Plan.Mode == fusion.Greedy && e.settled.Load():
		return made + ", and nothing better was found"
	}
	return made
}

// searcher looks for better plans in the background, one at a time. Its goroutine ends when no
// search is queued.
type searcher struct {
	plans *Store

	mu      sync.Mutex
	idle    sync.Cond
	queue   []*search
	running bool
	Ended   atomic.Bool
}

// maxSearchQueue limits the segments that wait for a search. A segment that finds the queue full
// tries again when its greedy plan is found again.
const maxSearchQueue = 256

func (x *searcher) init(p *Store) {
	x.plans = p
	x.idle.L = &x.mu
}

// waits reports whether the program waits for searches. It does if an option says so, if it waits
// for compilers or tuning anyway, or if the device builds kernels so slowly that building those
// of a greedy plan would take longer than the search.
func (p *Store) waits() bool {
	o := &p.Opts
	return o.Explore == device.ExploreWait || o.Tune == device.TuneWait || o.Compile == runtime.CompileWait || o.Tier == device.TierCompiled || p.Caps.SlowBuild
}

// exploreOptions returns the options with which a new segment is explored.
func (p *Store) exploreOptions() fusion.Options {
	opt := fusion.Options{Mode: p.Mode()}
	if opt.Mode == fusion.Best && !p.waits() {
		opt.Effort, opt.Waits = p.Quick, true
	}
	return opt
}

// Improvable reports whether a search for a better plan than e should begin: e is a greedy plan,
// or the segment is outside its class.
func (p *Store) Improvable(e *Known, seg *segment.Segment) bool {
	switch {
	case p.Opts.Fusion != device.FusionOn || e.Plan.Mode == fusion.Unfused || e.Searching.Load():
		return false
	case e.Plan.Mode == fusion.Greedy && !e.settled.Load():
		return true
	}
	return !e.Suits(seg) && e.others.Load() < MaxClasses
}

// improve begins a search. If the program waits for searches, improve runs it at once and returns
// the better plan, if there is one.
func (p *Store) improve(s *search) *Known {
	if s.old.Searching.Swap(true) {
		return nil
	}
	if p.waits() {
		return p.Search.one(s, nil)
	}
	if !p.Search.enqueue(s) {
		s.old.Searching.Store(false)
	}
	return nil
}

func (x *searcher) enqueue(s *search) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.Ended.Load() || len(x.queue) == maxSearchQueue {
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
		if len(x.queue) == 0 || x.Ended.Load() {
			x.queue, x.running = nil, false
			x.idle.Broadcast()
			x.mu.Unlock()
			return
		}
		s := x.queue[0]
		x.queue[0] = nil
		x.queue = x.queue[1:]
		x.mu.Unlock()
		x.one(s, x.Ended.Load)
	}
}

// one runs a search and gives its segment the better plan, if there is one.
func (x *searcher) one(s *search, stop func() bool) *Known {
	d := x.plans
	defer s.old.Searching.Store(false)
	if s.old.Replayed.Load() != nil || !d.Trie.Holds(s.at) {
		return nil // the plan is not used any more
	}
	ends := func() { s.old.settled.Store(true) }
	if s.sizes = s.old.Plan.Mode != fusion.Greedy || s.old.settled.Load(); s.sizes {
		ends = func() { s.old.others.Store(MaxClasses) }
		s.old.others.Add(1)
	} else if s.old.searches.Add(1) >= maxSearches {
		ends()
	}
	best, err := d.Explore(&s.seg, fusion.Options{Mode: fusion.Best, Stop: stop})
	if err != nil {
		ends()
		if !errors.Is(err, fusion.ErrStopped) && !device.Gone(err) {
			d.unbuilt(&s.seg, func(node int32) string { return s.old.LineOf(nil, node) }, err)
		}
		return nil
	}
	best.wants = s.wants
	better, changed := d.replace(s, best)
	if d.finder.Cache != nil {
		d.save(saving{s.key, changed, s.wants})
	}
	return better
}

// replace gives a segment a better plan than the one by which it ran. The old plan stays, after
// the better one, if it is the best at other sizes, or if it is greedy and serves segments that
// the better one does not. better is nil if the old plan is as good, or is gone. changed is the
// plan to save as the result of the search.
func (p *Store) replace(s *search, best *Known) (better, changed *Known) {
	old := s.old
	if old.Plan.Same(best.Plan) {
		if s.sizes {
			old.widen(best.Plan.Sizes)
		} else {
			old.SetClass(best.Plan.Sizes)
		}
		old.best.Store(true)
		old.settled.Store(true)
		p.Retired(best)
		return nil, old
	}
	gone, covered := best, false // gone: the new plan if the trie does not take it; covered: the old plan leaves the trie
	best.lines, changed = old.lines, best
	best.Found.Store(old.Found.Load())
	best.others = old.others
	p.Trie.Update(s.at, func(plans []*Known) []*Known {
		i := slices.Index(plans, old)
		if i < 0 {
			return plans
		}
		better, gone = best, nil
		for _, e := range plans {
			if e.Replayed.Load() == nil && e.Plan.Same(best.Plan) && slices.Equal(e.SetOf, best.SetOf) {
				better, gone = e, best // another stream, or a search at other sizes, found the same plan
			}
		}
		plans = slices.Clone(plans)
		if better == best {
			plans = slices.Insert(plans, i, best)
			i++
		}
		if covered = !s.sizes && best.Plan.Covers(old.Plan); covered {
			plans = slices.Delete(plans, i, i+1)
		}
		return plans
	})
	if gone != nil {
		p.Retired(gone)
	}
	if covered {
		p.Retired(old)
	}
	if better == nil {
		return nil, changed
	}
	if better != best {
		better.widen(best.Plan.Sizes)
		changed = better
	}
	if !s.sizes {
		old.Next.Store(better)
		if again := old.Replayed.Load(); again != nil {
			better.Replay(*again)
		}
	}
	return better, changed
}

// Wait returns when no search is queued or runs.
func (x *searcher) Wait() {
	x.mu.Lock()
	for x.running {
		x.idle.Wait()
	}
	x.mu.Unlock()
}

// Stop ends searches and waits for the running one.
func (x *searcher) Stop() {
	x.Ended.Store(true)
	x.Wait()
}
