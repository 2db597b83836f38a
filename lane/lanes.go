package lane

import (
	goruntime "runtime"
	"sync/atomic"
)

// Lanes is what the lanes of a device have in common: jobs of a lane run in order, those of
// several lanes at once. The device decides how its threads are shared.
type Lanes struct {
	Submitted, Finished atomic.Uint64 // jobs of all lanes

	waited atomic.Pointer[Lane] // whose job somebody ran for himself last
	many   atomic.Int32         // for so many more such jobs several lanes are in use
}

// manyFor is how long one lane must be alone before others are not expected.
const manyFor = 64

// giveWay lets other goroutines run, where several streams are in use, when one has
// run a job for itself: a server's requests are short, and Go would let one goroutine
// make hundreds of them before the next one has its turn.
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

// Last is the number of jobs that were submitted, and whether any has not run.
func (x *Lanes) Last() (seq uint64, busy bool) {
	done := x.Finished.Load() // first: or what ends meanwhile would not count as begun
	seq = x.Submitted.Load()
	return seq, seq != done
}
