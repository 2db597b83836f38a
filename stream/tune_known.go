package stream

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// tuning is what is known of all launches with one key.
type tuning struct {
	key    string
	kernel string // its text
	list   []runtime.Choice
	ranked atomic.Pointer[ranking] // nil until the candidates were timed
	asked  atomic.Bool             // a trial is queued, runs or was in vain
	unfit  atomic.Pointer[error]   // why it was in vain
}

// ranking is a table with what follows from it. at is the place in order of the
// choice that is taken: those before it failed.
type ranking struct {
	table *autotune.Table
	order []int
	list  []runtime.Choice
	at    atomic.Int32
}

func (r *ranking) taken() runtime.Choice { return r.list[r.order[r.at.Load()]] }

func namesOf(list []runtime.Choice) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}

// taken is what a launch takes: the device's own way until the others are known.
func (t *tuning) taken() runtime.Choice {
	if r := t.ranked.Load(); r != nil {
		return r.taken()
	}
	return t.list[0]
}

// pending reports a tuning whose trial is queued or runs.
func (t *tuning) pending() bool {
	return t.asked.Load() && t.ranked.Load() == nil && t.unfit.Load() == nil
}

// fail gives up the choice with this code; the next one takes its place.
func (x *tuner) fail(t *tuning, code uint64) {
	if r := t.ranked.Load(); r != nil {
		if at := r.at.Load(); code != 0 && r.taken().Code == code && r.at.CompareAndSwap(at, at+1) {
			x.chosen(t, r, false)
		}
	}
}

// find is what is known of a launch, in this process or from an earlier one. Files
// are read without a lock that others wait for.
func (x *tuner) find(key, kernel string, list []runtime.Choice) *tuning {
	x.mu.Lock()
	t := x.known[key]
	x.mu.Unlock()
	if t != nil {
		return t
	}
	t = &tuning{key: key, kernel: kernel, list: list}
	renewed := x.renewed.Load()
	t.ranked.Store(x.recall(t))
	x.mu.Lock()
	defer x.mu.Unlock()
	if first := x.known[key]; first != nil { // somebody else found it meanwhile
		return first
	}
	for other, k := range x.known {
		if len(x.known) < maxTunings {
			break
		}
		if !k.pending() { // any will do: geometries that are in use have theirs
			delete(x.known, other)
		}
	}
	if x.renewed.Load() == renewed { // else a bundle came that was not looked at
		x.known[key] = t
	}
	return t
}

// renew has launches look again for tables that were not there: a bundle came.
func (x *tuner) renew() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, t := range x.known {
		if t.ranked.Load() == nil && !t.pending() {
			delete(x.known, key)
		}
	}
	x.renewed.Add(1)
}

// key is what timings hold for: the device, the facts, and the kernel's text.
func (x *tuner) key(facts, kernel string) string {
	return x.scope + "\nfacts " + facts + "\n" + kernel
}

// kindTuning is the kind of the entries that hold tables of timings.
const kindTuning = "tuning"

var errOtherCandidates = errors.New("a tuning table of other candidates")

// recall finds a table in the bundles in use or in the cache on disk.
func (x *tuner) recall(t *tuning) *ranking {
	d := x.dev
	scope, rest := plancache.SplitKey(t.key)
	sources := d.bundles.sources()
	for i := range sources {
		if value, ok := d.fromBundle(&sources[i], kindTuning, scope, rest); ok {
			if r := x.rank(t, value, func(err error) { d.refuseBundled(&sources[i], kindTuning, err) }); r != nil {
				return r
			}
		}
	}
	if value, ok := d.cache.Get(kindTuning, t.key); ok {
		return x.rank(t, value, func(err error) { d.cache.Refuse(kindTuning, err) })
	}
	return nil
}

// rank makes a ranking of a table that an earlier process wrote, if it is one.
func (x *tuner) rank(t *tuning, value []byte, refuse func(error)) *ranking {
	table, err := autotune.Parse(string(value))
	if err == nil && !table.Holds(namesOf(t.list)) {
		err = errOtherCandidates
	}
	if err != nil {
		refuse(err)
		return nil
	}
	if table.Untimed() && x.dev.opts.Tune == TuneWait { // who waits for it has the time
		return nil
	}
	r := &ranking{table: table, order: table.Order(), list: t.list}
	x.chosen(t, r, true)
	return r
}

// told passes on what autotune tells of a tuning.
func (x *tuner) told(t *tuning, e autotune.Event) {
	x.dev.onTune(t, TuneEvent{Step: string(e.Step), Candidate: e.Candidate, Runs: e.Runs, Elapsed: e.Took, Err: e.Err})
}

// chosen tells of what launches run by from now on.
func (x *tuner) chosen(t *tuning, r *ranking, known bool) {
	x.dev.onTune(t, TuneEvent{Step: string(autotune.Chosen), Candidate: r.taken().Name, Known: known})
}

func (d *Device) onTune(t *tuning, e TuneEvent) {
	if h := d.opts.Trace; h != nil && h.Tune != nil {
		e.Kernel = fmt.Sprintf("%016x", xxhash.Sum64String(t.kernel))
		d.hook(func() { h.Tune(e) })
	}
}
