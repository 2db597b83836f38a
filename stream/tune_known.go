package stream

import (
	"strings"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// find is what is known of a unit, in this process or from an earlier one. Files
// are read without a lock that others wait for.
func (x *tuner) find(key, kernel string, c runtime.Choices) *tuning {
	x.mu.Lock()
	t := x.known[key]
	if t != nil {
		x.use(t)
	}
	x.mu.Unlock()
	if t != nil {
		x.refresh(t)
		return t
	}
	t = &tuning{key: key, kernel: kernel, list: c.List}
	renewed := x.renewed.Load()
	t.ranked.Store(x.recall(t))
	x.mu.Lock()
	defer x.mu.Unlock()
	if first := x.known[key]; first != nil { // somebody else found it meanwhile
		return first
	}
	if len(x.known) >= maxTunings {
		x.evict()
	}
	x.use(t)
	x.known[key] = t
	t.stale.Store(t.ranked.Load() == nil && x.renewed.Load() != renewed) // it came while nobody knew of t
	return t
}

// refresh looks for a table in a bundle that came since.
func (x *tuner) refresh(t *tuning) {
	if t.stale.Swap(false) {
		t.ranked.CompareAndSwap(nil, x.recall(t))
	}
}

// use notes that a tuning was looked up. The tuner's lock is held.
func (x *tuner) use(t *tuning) {
	x.uses++
	t.used = x.uses
}

// again is find of what is known already.
func (x *tuner) again(t *tuning) {
	x.mu.Lock()
	x.use(t)
	x.mu.Unlock()
	x.refresh(t)
}

// evicted is how many tunings are looked at to find one that may go.
const evicted = 32

// evict forgets a tuning: one of those that nothing is known of if there are any,
// the least recently looked up of some. Geometries that are in use have theirs.
// The tuner's lock is held.
func (x *tuner) evict() {
	var out *tuning
	seen := 0
	for _, t := range x.known {
		if t.pending() {
			continue
		}
		blank := t.ranked.Load() == nil
		if out == nil || blank && out.ranked.Load() != nil || blank == (out.ranked.Load() == nil) && t.used < out.used {
			out = t
		}
		if seen++; seen == evicted {
			break
		}
	}
	if out != nil {
		delete(x.known, out.key)
	}
}

// pending reports a tuning whose trial is queued or runs.
func (t *tuning) pending() bool {
	return t.asked.Load() && t.ranked.Load() == nil && t.unfit.Load() == nil
}

// renew has launches look again for tables that were not there: a bundle came.
func (x *tuner) renew() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.known {
		if t.ranked.Load() == nil {
			t.stale.Store(true)
		}
	}
	x.renewed.Add(1)
}

// key is what timings hold for: the device, the facts, and the kernels' texts.
func (x *tuner) key(facts string, kernels []string) string {
	return x.scope + "\nfacts " + facts + "\n" + strings.Join(kernels, "")
}

// kindTuning is the kind of the entries that hold tables of timings.
const kindTuning = "tuning"

// recall finds a table in the bundles in use or in the cache on disk: one for which
// everything could be tried if there is one.
func (x *tuner) recall(t *tuning) *ranking {
	r := x.recorded(t)
	if r != nil {
		x.chosen(t, r, true)
	}
	return r
}

func (x *tuner) recorded(t *tuning) (best *ranking) {
	d := x.dev
	take := func(value []byte, refuse func(error)) *ranking {
		var r *ranking
		table, err := autotune.Parse(string(value))
		if err == nil {
			r, err = x.rank(t, table)
		}
		if err != nil {
			refuse(err)
			return nil
		}
		if why := table.Unfit(); why != nil {
			if d.opts.Tune != TuneWait { // who waits for it has the time
				t.unfit.Store(&why)
				t.asked.Store(true)
			}
			return nil
		}
		return r
	}
	better := func(r *ranking) bool { // and there is no need to look on
		if r != nil && (best == nil || len(r.table.Lacking()) < len(best.table.Lacking())) {
			best = r
		}
		return r != nil && len(r.table.Lacking()) == 0
	}
	scope, rest := plancache.SplitKey(t.key)
	sources := d.bundles.sources()
	for i := range sources {
		if value, ok := d.fromBundle(&sources[i], kindTuning, scope, rest); ok {
			if better(take(value, func(err error) { d.refuseBundled(&sources[i], kindTuning, err) })) {
				return best
			}
		}
	}
	if value, ok := d.cache.Get(kindTuning, t.key); ok {
		better(take(value, func(err error) { d.cache.Refuse(kindTuning, err) }))
	}
	return best
}
