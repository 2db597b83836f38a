package stream

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/runtime"
)

// tuning is what is known of all units of launches with one key.
type tuning struct {
	key    string
	kernel string // the text of the first
	list   []runtime.Choice
	ranked atomic.Pointer[ranking] // nil until the candidates were timed
	asked  atomic.Bool             // a trial is queued, runs or was in vain
	unfit  atomic.Pointer[error]   // why it was in vain
	stale  atomic.Bool             // a bundle came since it was looked for
	used   uint64                  // when it was looked up last; under tuner.mu
}

// ranking is a table with what follows from it. at is the place in order of the
// choice that is taken: those before it failed.
type ranking struct {
	table *autotune.Table
	order []int
	list  []runtime.Choice // of the table's rows: a tuning's, and their combination
	at    atomic.Int32
}

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

func (r *ranking) taken() runtime.Choice { return r.list[r.order[r.at.Load()]] }

// fail gives up the choice with this code; the next one takes its place. It
// reports whether that was done by this call.
func (x *tuner) fail(t *tuning, code uint64) bool {
	r := t.ranked.Load()
	if r == nil {
		return false
	}
	at := r.at.Load()
	if r.list[r.order[at]].Code != code || int(at) == len(r.order)-1 || !r.at.CompareAndSwap(at, at+1) {
		return false
	}
	x.chosen(t, r, false)
	return true
}

// wanted reports that a tuning's candidates are to be timed: nobody did so, or some
// could not be tried where that was done and the device may be able to now.
func (x *tuner) wanted(u *unit, ls []runtime.Launch) bool {
	r := u.ranked.Load()
	if r == nil {
		return true
	}
	own := ls[0].Choice
	defer func() { ls[0].Choice = own }()
	for _, i := range r.table.Lacking() {
		if ls[0].Choice = r.list[i].Code; x.drv.Possible(ls) {
			return true
		}
	}
	return false
}

var errOtherCandidates = errors.New("a tuning table of other candidates")

// rank makes a ranking of a table that was timed by an earlier process. What a
// combination is made of follows from the times of its parts.
func (x *tuner) rank(t *tuning, table *autotune.Table) (*ranking, error) {
	r := &ranking{table: table, order: table.Order(), list: t.list}
	if !table.Holds(namesOf(t.list)) {
		return nil, errOtherCandidates
	}
	if n := len(t.list); len(table.Rows) > n {
		c, ok := x.combine(t.list, table.Won())
		if !ok || c.Name != table.Rows[n].Name {
			return nil, errOtherCandidates
		}
		r.list = append(t.list[:n:n], c)
	}
	return r, nil
}

// combine makes one choice of several.
func (x *tuner) combine(list []runtime.Choice, of []int) (runtime.Choice, bool) {
	if len(of) < 2 {
		return runtime.Choice{}, false
	}
	codes := make([]uint64, len(of))
	for i, n := range of {
		codes[i] = list[n].Code
	}
	return x.drv.Combine(codes)
}

// forced is the choice with a number, and behind those alone one of each two that
// go together.
func (x *tuner) forced(list []runtime.Choice, k int) uint64 {
	n := len(list)
	if k %= n * n; k >= n {
		if c, ok := x.combine(list, []int{k / n, k % n}); ok {
			return c.Code
		}
	}
	return list[k%n].Code
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
