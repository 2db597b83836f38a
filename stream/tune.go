package stream

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/runtime"
)

// Tuning: where a device has several ways to run a launch, they are timed on
// memory of their own while no stream has anything to run, or between the runs of a
// program that never pauses, and from then on the fastest is taken. Nothing is tried
// on a program's own runs: a candidate that is slow, or wrong, would be the program's
// loss.

// TuneMode says when ways to run a kernel are compared.
type TuneMode uint8

const (
	TuneBackground TuneMode = iota // while nothing else runs, and for a small share of the time between runs
	TuneWait                       // before the first run
	TuneOff                        // never; results of earlier processes are not used either
	TuneIdle                       // while nothing else runs
)

const (
	// tuneAfter is how many runs at the same sizes make a segment worth tuning in
	// the background.
	tuneAfter = 8
	// tuneLongest is how long a single run may take in the background: whoever comes
	// meanwhile waits for its end.
	tuneLongest = 25 * time.Millisecond
	// tuneBudget is the time that tuning in the background may take in all.
	tuneBudget = 10 * time.Second
	// maxTunings bounds what is known of launches, maxTrials those that wait to
	// be timed.
	maxTunings = 4096
	maxTrials  = 256
)

// unit is a launch of a plan that there are several ways to run, with what is
// known of it.
type unit struct {
	at int
	*tuning
}

// tuned is what a geometry knows of its launches. Immutable but for its counter.
type tuned struct {
	changes uint64 // of the device, when it was found out
	units   []unit
	runs    atomic.Int32
}

// tuner times candidates, one launch at a time. Its goroutine lives as long as
// there is work.
type tuner struct {
	dev   *Device
	drv   runtime.Tuner // nil: nothing is tuned
	scope string        // of every key
	wake  chan struct{}

	mu      sync.Mutex
	idle    sync.Cond
	known   map[string]*tuning
	queue   []*trial
	running bool
	renewed atomic.Uint64 // bundles that came

	turn    sync.Mutex      // held while something of a trial runs, or its memory changes hands
	holders map[*trial]bool // trials that have memory; under turn
	yielded atomic.Int64    // when the program took that back last, in Unix nanoseconds

	waiting atomic.Int32 // callers that wait for it, and so leave the device alone
	ended   atomic.Bool
	spent   atomic.Int64 // nanoseconds
	taken   atomic.Int64 // of these, from a program that does not pause

	seen   uint64 // the executor's last job when it was looked at, and since when
	since  time.Time
	ration ration // of a program that never pauses
}

func (x *tuner) init(d *Device) {
	x.dev = d
	x.idle.L = &x.mu
	x.wake = make(chan struct{}, 1)
	x.known = map[string]*tuning{}
	x.holders = map[*trial]bool{}
	switch d.opts.Tune {
	case TuneOff:
		return
	case TuneBackground:
		x.ration.share = tuneShare
	}
	x.drv, _ = d.drv.(runtime.Tuner)
	x.scope = d.caps.Scope()
}

// unfitTuning says why timings that were made for a scope are of no use here.
// Where nothing is tuned nobody asks for them.
func (d *Device) unfitTuning(scope string) string {
	if d.tune.drv == nil || scope == d.tune.scope {
		return ""
	}
	return fmt.Sprintf("timings for %s, this is %s", scope, d.tune.scope)
}

// choose gives the launches of a bound plan their choices. The stream's lock is
// held.
func (x *tuner) choose(ent *entry, geo *geometry, ls []runtime.Launch) []unit {
	if x.drv == nil {
		return nil
	}
	t := geo.tuned.Load()
	if changes := x.drv.Changes() + x.renewed.Load(); t == nil || t.changes != changes {
		fresh := x.look(ent, ls, changes)
		if t != nil {
			fresh.runs.Store(min(t.runs.Load(), tuneAfter-1)) // once more, for what is new
		}
		t = fresh
		geo.tuned.Store(t)
	}
	if len(t.units) == 0 {
		return nil
	}
	k, forced := force.Variant()
	if wait := x.dev.opts.Tune == TuneWait; !forced && !ls[0].Provisional && (wait || t.runs.Load() < tuneAfter && t.runs.Add(1) == tuneAfter) {
		for i := range t.units {
			if u := &t.units[i]; u.ranked.Load() == nil && !u.asked.Swap(true) && !x.try(x.trial(u, ent, geo, &ls[u.at]), wait) {
				u.asked.Store(false) // later
				t.runs.Store(0)
			}
		}
	}
	for i := range t.units {
		u := &t.units[i]
		if ls[u.at].Choice = u.taken().Code; forced { // by tests only
			ls[u.at].Choice = u.list[k%len(u.list)].Code
		}
	}
	return t.units
}

// look finds out what may be chosen for launches, and what is known of it.
func (x *tuner) look(ent *entry, ls []runtime.Launch, changes uint64) *tuned {
	t := &tuned{changes: changes}
	for i := range ls {
		if c := x.drv.Choices(&ls[i]); len(c.List) > 1 {
			t.units = append(t.units, unit{i, x.find(x.key(c.Facts, ent.texts[i]), ent.texts[i], c.List)})
		}
	}
	return t
}

var errTuneBudget = errors.New("the time for tuning was spent (tunebudget)")

// try times a launch's candidates: at once where the program waits for it, else
// in the background. It reports whether there was a place in the queue.
func (x *tuner) try(t *trial, wait bool) bool {
	if x.overBudget() {
		t.tuning.unfit.Store(&errTuneBudget)
		return true
	}
	if wait {
		x.dev.exec.drain()
		x.one(t)
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended.Load() || len(x.queue) == maxTrials {
		return false
	}
	x.queue = append(x.queue, t)
	if !x.running {
		x.running = true
		go x.work()
	}
	return true
}

func (x *tuner) work() {
	for {
		x.mu.Lock()
		if x.overBudget() {
			for _, t := range x.queue {
				t.tuning.unfit.Store(&errTuneBudget)
			}
			x.queue = nil
		}
		if len(x.queue) == 0 || x.ended.Load() {
			x.queue, x.running = nil, false
			x.idle.Broadcast()
			x.mu.Unlock()
			return
		}
		t := x.queue[0]
		x.queue[0] = nil
		x.queue = x.queue[1:]
		x.mu.Unlock()
		x.one(t)
	}
}

// budget is how long tuning may take in all; 0: no limit.
func (x *tuner) budget() time.Duration {
	if b := x.dev.opts.TuneBudget; b != 0 || x.dev.opts.Tune == TuneWait {
		return b
	}
	return tuneBudget
}

func (x *tuner) overBudget() bool {
	b := x.budget()
	return b > 0 && x.spent.Load() > int64(b)
}

// one times a launch's candidates and keeps what came out.
func (x *tuner) one(t *trial) {
	d := x.dev
	table, err := x.measure(t)
	if x.ended.Load() {
		return // what failed may have done so because the device is being closed
	}
	if err != nil {
		if !errors.Is(err, autotune.ErrStopped) {
			t.tuning.unfit.Store(&err)
		}
		return
	}
	for _, r := range table.Rows[1:] {
		if r.Refused != "" && r.Refused != autotune.Unconfirmed { // no fallback: nothing of the program ran by it
			d.onError(fmt.Errorf("tuning: %s is not used: %s", r.Name, r.Refused))
		}
	}
	t.tuning.ranked.Store(&ranking{table: table, order: table.Order(), list: t.list})
	if !table.Untimed() {
		d.stats.tunings.Add(1)
	}
	if d.cache != nil && !t.disturbed {
		d.cache.Put(kindTuning, t.tuning.key, []byte(table.Text())) // a failure is counted there
	}
}

// retreat is called when a list of launches failed at one of them: it takes
// choices back, and reports whether there were any, so that the rest can be run
// again. Where it is not known which launch failed all choices are suspected.
func (x *tuner) retreat(ls []runtime.Launch, units []unit, at int) bool {
	again := false
	for _, u := range units {
		if u.at < at || ls[u.at].Choice == 0 {
			continue
		}
		if u.at == at {
			x.fail(u.tuning, ls[u.at].Choice)
			if next := u.taken().Code; next != ls[u.at].Choice {
				ls[u.at].Choice = next
				return true
			}
		}
		ls[u.at].Choice = 0
		again = true
	}
	return again
}
