package cpu

import (
	"fmt"
	goruntime "runtime"
	"sync"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// A run goes through four steps, each in one place:
//
//	bind     buffers in Go's heap are pinned, and chains are run on their own   transfer.go, chain.go
//	choose   the crew that runs the list, and the order of its launches         crew.go, waves.go
//	prepare  each launch is checked, and gets its walk and its code             prepare.go
//	run      the crew runs the launches                                         exec.go
//
// A prepared list has done the first three once: see prepared.go.

// Run runs launches in order and returns when they are done.
func (d *device) Run(list []runtime.Launch) error {
	if d.mem.HasShared() {
		var pin goruntime.Pinner
		defer pin.Unpin()
		d.pinShared(&pin, list)
	}
	if runtime.HasChains(list) {
		return runtime.EachChain(list, d.runPlain, d.runChain)
	}
	return d.runPlain(list)
}

// runPlain runs a list without chains, whose buffers are pinned.
func (d *device) runPlain(list []runtime.Launch) error {
	crowded, err := d.begin()
	if err != nil {
		return err
	}
	defer d.end()
	way := d.wayOf(list, crowded)
	defer way.inTurn.release()
	crews := d.crewsFor(&way, crowded)
	room := readies.Get().(*readyList)
	defer room.release()
	if err := room.prepare(d, list, &way, d.launchOnce); err != nil {
		return err
	}
	d.makeMissing(*room, way.most)
	return way.run(crews, *room)
}

// begin begins a run, which keeps the device open until end. crowded reports that others run too.
func (d *device) begin() (crowded bool, err error) {
	if err := d.enter(); err != nil {
		return false, err
	}
	if err := fault.Hit(fault.Launch); err != nil {
		d.life.RUnlock()
		return false, &runtime.LaunchError{Err: fmt.Errorf("cpu: %w", err)}
	}
	return d.crowd.Enter(), nil
}

func (d *device) end() {
	d.crowd.Leave()
	d.life.RUnlock()
}

// runWay is how a list runs.
type runWay struct {
	work   int64     // by workOf, in nanoseconds
	worth  bool      // some launch is worth several threads
	waves  bool      // some launches run at the same time, unless others run too
	most   int64     // most threads of a launch that is in no wave
	inTurn *ordering // nil: in the order of the list
}

// wayOf chooses how a list runs.
func (d *device) wayOf(list []runtime.Launch, crowded bool) runWay {
	way := runWay{most: d.threadsOf()}
	for i := range list {
		nanos, several := workOf(&list[i])
		way.work += nanos
		way.worth = way.worth || several
	}
	if !crowded || !way.alone(true) {
		way.inTurn = order(list, way.most)
		way.waves = way.inTurn != nil
	}
	if way.alone(crowded) {
		way.most = 1
	}
	return way
}

// alone reports that the list runs on the calling thread alone.
func (w *runWay) alone(crowded bool) bool {
	switch {
	case w.worth:
		return crowded && w.work <= ownWork
	case w.waves && !crowded:
		return false
	}
	return w.work <= turnWork
}

// crewsFor returns the crews that run a list now, and wakes the threads of the next one.
func (d *device) crewsFor(way *runWay, crowded bool) crews {
	if way.alone(crowded) {
		return d.alone
	}
	d.wide.rouse()
	return d.wide
}

// turn returns the launch that runs at place i, and its most threads.
func (w *runWay) turn(i int) (t turn, threads int64) {
	if w.inTurn == nil {
		return turn{at: i}, w.most
	}
	if t = w.inTurn.turns[i]; t.wave > 0 {
		return t, 1
	}
	return t, w.most
}

// run runs prepared launches on a crew.
func (w *runWay) run(crews crews, list readyList) (err error) {
	c := crews.Lend()
	if w.work < turnWork {
		err = c.exec.run(list)
	} else {
		err = crews.run(&c, list)
	}
	crews.GiveBack(c)
	return err
}

// readyList is the prepared launches of a run.
type readyList []ready

// readies reuses the lists of runs.
var readies = sync.Pool{New: func() any { return new(readyList) }}

// release gives back what the launches hold, and the list.
func (x *readyList) release() {
	x.drop()
	readies.Put(x)
}

// drop empties the list and gives back what its launches hold.
func (x *readyList) drop() {
	for i := range *x {
		if o := (*x)[i].dot; o != nil {
			dotOrders.Put(o)
		}
	}
	clear(*x)
	*x = (*x)[:0]
}

// prepare appends the launches of a list that have work to do, in the order in which they run. find
// finds the code of each. If it fails nothing has run yet: the engine may run the whole list op by
// op.
func (x *readyList) prepare(d *device, list []runtime.Launch, way *runWay, find func(*ready) error) error {
	for i := range list {
		t, threads := way.turn(i)
		r, err := d.order(&list[t.at], threads)
		if err == nil && !r.empty {
			r.index, r.wave = t.at, t.wave
			*x = append(*x, r)
			err = find(&(*x)[len(*x)-1])
		}
		if err != nil {
			return &runtime.LaunchError{Err: fmt.Errorf("cpu: launch %d: %w", t.at, err)}
		}
	}
	return nil
}

// launchOnce counts a launch of one run and finds its code, or starts its compile.
func (d *device) launchOnce(r *ready) error {
	d.account(r)
	d.choose(r)
	if r.wave > 0 {
		d.count.grouped.Add(1)
	}
	return nil
}

// makeMissing makes the machine code that launches lack, on at most so many threads.
func (d *device) makeMissing(list readyList, threads int64) {
	var missing []*variant
	for i := range list {
		if v := list[i].lacks; v != nil {
			missing = append(missing, v)
		}
	}
	if missing == nil {
		return
	}
	d.makeMachines(missing, threads)
	for i := range list {
		if r := &list[i]; r.lacks != nil {
			d.settle(r)
		}
	}
}
