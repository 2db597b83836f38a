package autotune

import (
	"errors"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/shelf"
)

// Tuning is what is known of all launches with one key.
type Tuning struct {
	Key    string
	kernel string // its text
	list   []runtime.Choice
	Ranked atomic.Pointer[ranking] // nil until the candidates were timed
	Asked  atomic.Bool             // a trial is queued, runs or was in vain
	unfit  atomic.Pointer[error]   // why it was in vain
}

// ranking is a table with what follows from it. at is the place in order of the
// choice that is taken: those before it failed.
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

// taken is what a launch takes: the device's own way until the others are known.
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

// fail gives up the choice with this code; the next one takes its place.
func (x *Tuner) fail(t *Tuning, code uint64) {
	if r := t.Ranked.Load(); r != nil {
		if at := r.at.Load(); code != 0 && r.taken().Code == code && r.at.CompareAndSwap(at, at+1) {
			x.chosen(t, r, false)
		}
	}
}

// find is what is known of a launch, in this process or from an earlier one. Files
// are read without a lock that others wait for.
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
	if first := x.Known[key]; first != nil { // somebody else found it meanwhile
		return first
	}
	for other, k := range x.Known {
		if len(x.Known) < MaxTunings {
			break
		}
		if !k.Pending() { // any will do: geometries that are in use have theirs
			delete(x.Known, other)
		}
	}
	if x.renewed.Load() == renewed { // else a bundle came that was not looked at
		x.Known[key] = t
	}
	return t
}

// Renew has launches look again for tables that were not there: a bundle came.
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

// key is what timings hold for: the device, the facts, and the kernel's text.
func (x *Tuner) key(facts, kernel string) string {
	return x.scope + "\nfacts " + facts + "\n" + kernel
}

var errOtherCandidates = errors.New("a tuning table of other candidates")

// recall finds a table in the bundles in use or in the cache on disk.
func (x *Tuner) recall(t *Tuning) *ranking {
	d := x.shelf
	scope, rest := plancache.SplitKey(t.Key)
	sources := d.Sources()
	for i := range sources {
		if value, ok := d.FromBundle(&sources[i], shelf.KindTuning, scope, rest); ok {
			if r := x.rank(t, value, func(err error) { d.RefuseBundled(&sources[i], shelf.KindTuning, err) }); r != nil {
				return r
			}
		}
	}
	if value, ok := d.Cache.Get(shelf.KindTuning, t.Key); ok {
		return x.rank(t, value, func(err error) { d.Cache.Refuse(shelf.KindTuning, err) })
	}
	return nil
}

// rank makes a ranking of a table that an earlier process wrote, if it is one.
func (x *Tuner) rank(t *Tuning, value []byte, refuse func(error)) *ranking {
	table, err := Parse(string(value))
	if err == nil && !table.Holds(namesOf(t.list)) {
		err = errOtherCandidates
	}
	if err != nil {
		refuse(err)
		return nil
	}
	if table.Untimed() && x.Opts.Tune == device.TuneWait { // who waits for it has the time
		return nil
	}
	r := &ranking{Table: table, order: table.Order(), list: t.list}
	x.chosen(t, r, true)
	return r
}

// told passes on what autotune tells of a tuning.
func (x *Tuner) told(t *Tuning, e Event) {
	x.onTune(t, device.TuneEvent{Step: string(e.Step), Candidate: e.Candidate, Runs: e.Runs, Elapsed: e.Took, Err: e.Err})
}

// chosen tells of what launches run by from now on.
func (x *Tuner) chosen(t *Tuning, r *ranking, known bool) {
	x.onTune(t, device.TuneEvent{Step: string(Chosen), Candidate: r.taken().Name, Known: known})
}

func (x *Tuner) onTune(t *Tuning, e device.TuneEvent) {
	if x.TellsTune() {
		x.OnTune(xxhash.Sum64String(t.kernel), e)
	}
}
