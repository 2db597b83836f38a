package autotune

import (
	"errors"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/runtime"
)

// Tuning is all that is known about launches with one key.
type Tuning struct {
	Key    string
	kernel string // the kernel's text
	list   []runtime.Choice
	Ranked atomic.Pointer[ranking] // nil until the candidates were timed
	Asked  atomic.Bool             // a trial is queued, runs or failed
	unfit  atomic.Pointer[error]   // why the trial failed
}

// ranking is a table with the order that follows from it. at is the index in order of the present
// choice; the choices before it failed.
type ranking struct {
	Table *Table
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

// taken returns the present choice: the device's default until the candidates were timed.
func (t *Tuning) taken() runtime.Choice {
	if r := t.Ranked.Load(); r != nil {
		return r.taken()
	}
	return t.list[0]
}

// Pending reports a tuning whose trial is queued or runs.
func (t *Tuning) Pending() bool {
	return t.Asked.Load() && t.Ranked.Load() == nil && t.unfit.Load() == nil
}

// fail gives up the choice with this code. The next one in order replaces it.
func (x *Tuner) fail(t *Tuning, code uint64) {
	if r := t.Ranked.Load(); r != nil {
		if at := r.at.Load(); code != 0 && r.taken().Code == code && r.at.CompareAndSwap(at, at+1) {
			x.chosen(t, r, false)
		}
	}
}

// find returns the Tuning of a launch, from this process or an earlier one. It reads files without
// holding the lock.
func (x *Tuner) find(key, kernel string, list []runtime.Choice) *Tuning {
	x.Mu.Lock()
	t := x.Known[key]
	x.Mu.Unlock()
	if t != nil {
		return t
	}
	t = &Tuning{Key: key, kernel: kernel, list: list}
	renewed := x.renewed.Load()
	t.Ranked.Store(x.recall(t))
	x.Mu.Lock()
	defer x.Mu.Unlock()
	if first := x.Known[key]; first != nil { // another goroutine found it meanwhile
		return first
	}
	for other, k := range x.Known {
		if len(x.Known) < MaxTunings {
			break
		}
		if !k.Pending() { // any one can go: geometries in use hold their own
			delete(x.Known, other)
		}
	}
	if x.renewed.Load() == renewed { // else a bundle was added that recall did not see
		x.Known[key] = t
	}
	return t
}

// Renew makes launches without a table look for one again, because a bundle was added.
func (x *Tuner) Renew() {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	for key, t := range x.Known {
		if t.Ranked.Load() == nil && !t.Pending() {
			delete(x.Known, key)
		}
	}
	x.renewed.Add(1)
}

// key names what timings depend on: the device, the facts, and the kernel's text.
func (x *Tuner) key(facts, kernel string) string {
	return x.scope + "\nfacts " + facts + "\n" + kernel
}

var errOtherCandidates = errors.New("the tuning table lists other candidates")

// recall finds a table in the bundles in use or in the cache on disk.
func (x *Tuner) recall(t *Tuning) *ranking {
	d := x.finder
	scope, rest := plancache.SplitKey(t.Key)
	sources := d.Sources()
	for i := range sources {
		if value, ok := d.FromBundle(&sources[i], lookup.KindTuning, scope, rest); ok {
			if r := x.rank(t, value, func(err error) { d.RefuseBundled(&sources[i], lookup.KindTuning, err) }); r != nil {
				return r
			}
		}
	}
	if value, ok := d.Cache.Get(lookup.KindTuning, t.Key); ok {
		return x.rank(t, value, func(err error) { d.Cache.Refuse(lookup.KindTuning, err) })
	}
	return nil
}

// rank makes a ranking of a table from an earlier process; nil if the table is invalid.
func (x *Tuner) rank(t *Tuning, value []byte, refuse func(error)) *ranking {
	table, err := Parse(string(value))
	if err == nil && !table.Holds(namesOf(t.list)) {
		err = errOtherCandidates
	}
	if err != nil {
		refuse(err)
		return nil
	}
	if table.Untimed() && x.Opts.Tune == device.TuneWait { // a program that waits for tuning has the time to measure again
		return nil
	}
	r := &ranking{Table: table, order: table.Order(), list: t.list}
	x.chosen(t, r, true)
	return r
}

// told passes an event of a measurement to the hooks.
func (x *Tuner) told(t *Tuning, e Event) {
	x.onTune(t, device.TuneEvent{Step: string(e.Step), Candidate: e.Candidate, Runs: e.Runs, Elapsed: e.Took, Err: e.Err})
}

// chosen tells the hooks which choice launches use from now on.
func (x *Tuner) chosen(t *Tuning, r *ranking, known bool) {
	x.onTune(t, device.TuneEvent{Step: string(Chosen), Candidate: r.taken().Name, Known: known})
}

func (x *Tuner) onTune(t *Tuning, e device.TuneEvent) {
	if x.TellsTune() {
		x.OnTune(xxhash.Sum64String(t.kernel), e)
	}
}
