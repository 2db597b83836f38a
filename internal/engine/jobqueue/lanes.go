package jobqueue

import (
	goruntime "runtime"
	"sync/atomic"
)

// Lanes is the state that the lanes of a device share. Jobs of one lane run in order, those of
// several lanes at the same time. The device decides how they share its threads.
type Lanes struct {
	Submitted, Finished atomic.Uint64 // number of jobs of all lanes

	waited atomic.Pointer[Lane] // the lane whose job a waiting caller ran last
	many   atomic.Int32         // several lanes count as in use for this number of further such jobs
}

// manyFor is the number of jobs after which a lane that is used alone counts as the only one.
const manyFor = 64

// giveWay lets other goroutines run after a caller has run a job itself, if several streams are in
// use. The requests of a server are short, and without this Go would let one goroutine make
// hundreds of them before the next one runs.
func (x *Lanes) giveWay(l *Lane) {
	if x.waited.Load() != l {
		x.waited.Store(l)
		x.many.Store(manyFor)
	} else if x.many.Load() > 0 {
		x.many.Add(-1)
	}
	if x.many.Load() > 0 {
		goruntime.Gosched()
	}
}

// Last returns the number of submitted jobs, and whether any of them has not run.
func (x *Lanes) Last() (seq uint64, busy bool) {
	done := x.Finished.Load() // loaded first: else a job that ends in between would hide one that has not run
	seq = x.Submitted.Load()
	return seq, seq != done
}
