package autotune

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/runtime"
)

// Tuning: if a device can run a launch in several ways, the tuner times them on memory of its own.
// It does so while no stream has anything to run, or between the runs of a program that never
// pauses. From then on, launches use the fastest way. It tries nothing on the program's own runs,
// where a slow or wrong candidate would harm the program.

const (
	// After is the number of runs at the same sizes after which a segment is worth tuning in the
	// background.
	After = 8
	// Longest limits a single run in the background, because the program waits for its end if it
	// needs the device meanwhile.
	Longest = 25 * time.Millisecond
	// tuneBudget is the total time that tuning in the background may take.
	tuneBudget = 10 * time.Second
	// MaxTunings limits the launches that are remembered, MaxTrials those that wait to be timed.
	MaxTunings = 4096
	MaxTrials  = 256
)

// Unit is a launch of a plan that can be run in several ways, with its Tuning.
type Unit struct {
	at int
	*Tuning
}

// Plan is the tuner's view of a plan: its steps, the texts of their kernels, the nodes that they
// compute, and the place where its tuning at these sizes is stored.
type Plan struct {
	Steps []fusion.Step
	Texts []string
	Nodes []ir.Node
	Tuned *atomic.Pointer[Tuned]
}

// Tuned is the tuning of one geometry's launches. It is immutable, but for its counter.
type Tuned struct {
	changes uint64 // the device's and the tuner's number of changes at that time
	units   []Unit
	runs    atomic.Int32
}

// Tuner times candidates, one launch at a time. Its goroutine ends when no trial is queued.
type Tuner struct {
	*device.Base
	lanes  *jobqueue.Lanes
	drain  func() // returns when all jobs submitted before the call have run
	finder *lookup.Finder

	ways  runtime.Tuner // nil: nothing is tuned
	scope string        // the scope of every key
	wake  chan struct{}

	Mu      sync.Mutex
	idle    sync.Cond
	Known   map[string]*Tuning
	Queue   []*Trial
	Running bool
	renewed atomic.Uint64 // number of bundles added

	Turn    sync.Mutex      // held during a step of a trial, and to change who holds memory
	Holders map[*Trial]bool // trials that have memory; guarded by Turn
	yielded atomic.Int64    // when the program last took the memory back, in Unix nanoseconds

	waiting atomic.Int32 // callers that wait for the tuner, and so leave the device alone
	ended   atomic.Bool
	Spent   atomic.Int64 // nanoseconds
	Taken   atomic.Int64 // of these, taken from a program that does not pause

	seen   uint64 // the lanes' last job when pace last saw a change, and the time of that
	since  time.Time
	ration Ration // of a program that never pauses
}

// Init prepares the tuner of an open device. drain returns when all submitted jobs have run.
func (x *Tuner) Init(d *device.Base, lanes *jobqueue.Lanes, drain func(), kept *lookup.Finder) {
	x.Base, x.lanes, x.drain, x.finder = d, lanes, drain, kept
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

// Choose sets the choices of a bound plan's launches. The caller holds the stream's lock.
func (x *Tuner) Choose(of Plan, ls []runtime.Launch) []Unit {
	if x.ways == nil {
		return nil
	}
	t := of.Tuned.Load()
	if changes := x.ways.Changes() + x.renewed.Load(); t == nil || t.changes != changes {
		fresh := x.look(of, ls, changes)
		if t != nil {
			fresh.runs.Store(min(t.runs.Load(), After-1)) // count the last run again, to time what is new
		}
		t = fresh
		of.Tuned.Store(t)
	}
	if len(t.units) == 0 {
		return nil
	}
	k, forced := testhook.Choice()
	if wait := x.Opts.Tune == device.TuneWait; !forced && !ls[0].Provisional && (wait || t.runs.Load() < After && t.runs.Add(1) == After) {
		for i := range t.units {
			if u := &t.units[i]; u.Ranked.Load() == nil && !u.Asked.Swap(true) && !x.try(x.trial(u, of, &ls[u.at]), wait) {
				u.Asked.Store(false) // a later run tries again
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

// look finds the launches that have choices, and their tunings.
func (x *Tuner) look(of Plan, ls []runtime.Launch, changes uint64) *Tuned {
	t := &Tuned{changes: changes}
	for i := range ls {
		if c := x.ways.Choices(&ls[i]); len(c.List) > 1 {
			t.units = append(t.units, Unit{i, x.find(x.key(c.Facts, of.Texts[i]), of.Texts[i], c.List)})
		}
	}
	return t
}

// ErrBudget says why launches are no longer timed.
var ErrBudget = errors.New("the time for tuning is used up (option tunebudget)")

// try times a launch's candidates: at once if the program waits for it, else in the background.
// It returns false if the queue has no place.
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

// budget is the total time that tuning may take; 0: no limit.
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

// one times a launch's candidates and keeps the result.
func (x *Tuner) one(t *Trial) {
	table, err := x.measure(t)
	if x.ended.Load() {
		return // closing the device may have caused a failure
	}
	if err != nil {
		if !errors.Is(err, ErrStopped) {
			t.tuning.unfit.Store(&err)
		}
		return
	}
	for _, r := range table.Rows[1:] {
		if r.Refused != "" && r.Refused != Unconfirmed { // not a fallback: no launch of the program used it
			x.OnError(fmt.Errorf("tuning: %s is not used: %s", r.Name, r.Refused))
		}
	}
	t.tuning.Ranked.Store(&ranking{Table: table, order: table.Order(), list: t.list})
	if !table.Untimed() {
		x.Counts.Tunings.Add(1)
	}
	if x.finder.Cache != nil && !t.disturbed {
		x.finder.Cache.Put(lookup.KindTuning, t.tuning.Key, []byte(table.Text())) // the cache counts failures
	}
}

// Retreat replaces choices after a list of launches failed at launch at, and reports whether it
// replaced any; then the caller can run the rest again. If it is unknown which launch failed, it
// resets the choices of all launches from at on.
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
