package autotune

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/shelf"
)

// Tuning: where a device has several ways to run a launch, they are timed on
// memory of their own while no stream has anything to run, or between the runs of a
// program that never pauses, and from then on the fastest is taken. Nothing is tried
// on a program's own runs: a candidate that is slow, or wrong, would be the program's
// loss.

const (
	// After is how many runs at the same sizes make a segment worth tuning in
	// the background.
	After = 8
	// Longest is how long a single run may take in the background: whoever comes
	// meanwhile waits for its end.
	Longest = 25 * time.Millisecond
	// tuneBudget is the time that tuning in the background may take in all.
	tuneBudget = 10 * time.Second
	// MaxTunings bounds what is known of launches, maxTrials those that wait to
	// be timed.
	MaxTunings = 4096
	MaxTrials  = 256
)

// Unit is a launch of a plan that there are several ways to run, with what is
// known of it.
type Unit struct {
	at int
	*Tuning
}

// Plan is a plan as the tuner sees it: its steps, the texts of their kernels, the
// nodes that they compute, and where what is found out about its launches is kept, for
// these sizes.
type Plan struct {
	Steps []fusion.Step
	Texts []string
	Nodes []ir.Node
	Tuned *atomic.Pointer[Tuned]
}

// Tuned is what a geometry knows of its launches. Immutable but for its counter.
type Tuned struct {
	changes uint64 // of the device, when it was found out
	units   []Unit
	runs    atomic.Int32
}

// Tuner times candidates, one launch at a time. Its goroutine lives as long as
// there is work.
type Tuner struct {
	*device.Base
	lanes *lane.Lanes
	drain func() // returns when all that was submitted by now has run
	shelf *shelf.Shelf

	ways  runtime.Tuner // nil: nothing is tuned
	scope string        // of every key
	wake  chan struct{}

	Mu      sync.Mutex
	idle    sync.Cond
	Known   map[string]*Tuning
	Queue   []*Trial
	Running bool
	renewed atomic.Uint64 // bundles that came

	Turn    sync.Mutex      // held while something of a trial runs, or its memory changes hands
	Holders map[*Trial]bool // trials that have memory; under turn
	yielded atomic.Int64    // when the program took that back last, in Unix nanoseconds

	waiting atomic.Int32 // callers that wait for it, and so leave the device alone
	ended   atomic.Bool
	Spent   atomic.Int64 // nanoseconds
	Taken   atomic.Int64 // of these, from a program that does not pause

	seen   uint64 // the lanes' last job when it was looked at, and since when
	since  time.Time
	ration Ration // of a program that never pauses
}

// Init readies the tuner of an open device. drain returns when all that was submitted
// has run.
func (x *Tuner) Init(d *device.Base, lanes *lane.Lanes, drain func(), kept *shelf.Shelf) {
	x.Base, x.lanes, x.drain, x.shelf = d, lanes, drain, kept
	x.idle.L = &x.Mu
	x.wake = make(chan struct{}, 1)
	x.Known = map[string]*Tuning{}
	x.Holders = map[*Trial]bool{}
	switch d.Opts.Tune {
	case device.TuneOff:
		return
	case device.TuneBackground:
		x.ration.Share = Share
	}
	x.ways, _ = d.Driver.(runtime.Tuner)
	x.scope = d.Caps.Scope()
}

// Choose gives the launches of a bound plan their choices. The stream's lock is
// held.
func (x *Tuner) Choose(of Plan, ls []runtime.Launch) []Unit {
	if x.ways == nil {
		return nil
	}
	t := of.Tuned.Load()
	if changes := x.ways.Changes() + x.renewed.Load(); t == nil || t.changes != changes {
		fresh := x.look(of, ls, changes)
		if t != nil {
			fresh.runs.Store(min(t.runs.Load(), After-1)) // once more, for what is new
		}
		t = fresh
		of.Tuned.Store(t)
	}
	if len(t.units) == 0 {
		return nil
	}
	k, forced := force.Choice()
	if wait := x.Opts.Tune == device.TuneWait; !forced && !ls[0].Provisional && (wait || t.runs.Load() < After && t.runs.Add(1) == After) {
		for i := range t.units {
			if u := &t.units[i]; u.Ranked.Load() == nil && !u.Asked.Swap(true) && !x.try(x.trial(u, of, &ls[u.at]), wait) {
				u.Asked.Store(false) // later
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
func (x *Tuner) look(of Plan, ls []runtime.Launch, changes uint64) *Tuned {
	t := &Tuned{changes: changes}
	for i := range ls {
		if c := x.ways.Choices(&ls[i]); len(c.List) > 1 {
			t.units = append(t.units, Unit{i, x.find(x.key(c.Facts, of.Texts[i]), of.Texts[i], c.List)})
		}
	}
	return t
}

// ErrBudget is why launches are not timed any more.
var ErrBudget = errors.New("the time for tuning was spent (tunebudget)")

// try times a launch's candidates: at once where the program waits for it, else
// in the background. It reports whether there was a place in the queue.
func (x *Tuner) try(t *Trial, wait bool) bool {
	if x.overBudget() {
		t.tuning.unfit.Store(&ErrBudget)
		return true
	}
	if wait {
		x.drain()
		x.one(t)
		return true
	}
	x.Mu.Lock()
	defer x.Mu.Unlock()
	if x.ended.Load() || len(x.Queue) == MaxTrials {
		return false
	}
	x.Queue = append(x.Queue, t)
	if !x.Running {
		x.Running = true
		go x.work()
	}
	return true
}

func (x *Tuner) work() {
	for {
		x.Mu.Lock()
		if x.overBudget() {
			for _, t := range x.Queue {
				t.tuning.unfit.Store(&ErrBudget)
			}
			x.Queue = nil
		}
		if len(x.Queue) == 0 || x.ended.Load() {
			x.Queue, x.Running = nil, false
			x.idle.Broadcast()
			x.Mu.Unlock()
			return
		}
		t := x.Queue[0]
		x.Queue[0] = nil
		x.Queue = x.Queue[1:]
		x.Mu.Unlock()
		x.one(t)
	}
}

// budget is how long tuning may take in all; 0: no limit.
func (x *Tuner) budget() time.Duration {
	if b := x.Opts.TuneBudget; b != 0 || x.Opts.Tune == device.TuneWait {
		return b
	}
	return tuneBudget
}

func (x *Tuner) overBudget() bool {
	b := x.budget()
	return b > 0 && x.Spent.Load() > int64(b)
}

// one times a launch's candidates and keeps what came out.
func (x *Tuner) one(t *Trial) {
	table, err := x.measure(t)
	if x.ended.Load() {
		return // what failed may have done so because the device is being closed
	}
	if err != nil {
		if !errors.Is(err, ErrStopped) {
			t.tuning.unfit.Store(&err)
		}
		return
	}
	for _, r := range table.Rows[1:] {
		if r.Refused != "" && r.Refused != Unconfirmed { // no fallback: nothing of the program ran by it
			x.OnError(fmt.Errorf("tuning: %s is not used: %s", r.Name, r.Refused))
		}
	}
	t.tuning.Ranked.Store(&ranking{Table: table, order: table.Order(), list: t.list})
	if !table.Untimed() {
		x.Counts.Tunings.Add(1)
	}
	if x.shelf.Cache != nil && !t.disturbed {
		x.shelf.Cache.Put(shelf.KindTuning, t.tuning.Key, []byte(table.Text())) // a failure is counted there
	}
}

// Retreat is called when a list of launches failed at one of them: it takes
// choices back, and reports whether there were any, so that the rest can be run
// again. Where it is not known which launch failed all choices are suspected.
func (x *Tuner) Retreat(ls []runtime.Launch, units []Unit, at int) bool {
	again := false
	for _, u := range units {
		if u.at < at || ls[u.at].Choice == 0 {
			continue
		}
		if u.at == at {
			x.fail(u.Tuning, ls[u.at].Choice)
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
