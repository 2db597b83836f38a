package cpu

import (
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// crew is a set of threads that run launches together. A device has crews of all its threads, for
// launches that are worth it. It also has crews of the calling thread alone, for small launches
// and for runs beside others: runs that share the processors are faster on one thread each than
// with waits for other threads at the end of each launch.
type crew struct {
	exec  *executor
	solos []*solo // of chains, one for each thread
}

const (
	// maxWide is how many crews of all threads may run at once. A run of many launches lets others
	// in between its launches, and a run of few does not delay the first few others that arrive.
	maxWide = 4
	// ownWork is the time, in nanoseconds, up to which launches run on the calling thread alone
	// while others run too.
	ownWork = 1e6
	// turnWork is the time, in nanoseconds, after which a run of several launches passes the crew
	// to waiting runs.
	turnWork = 4e6
)

// crews lends crews of one size.
type crews struct{ *threads.Lender[crew] }

func newCrews(size, most int, open func(threads int) *executor) crews {
	return crews{threads.NewLender(most, func() *crew { return &crew{exec: open(size)} })}
}

// rouse wakes the threads of the crew that will be lent next.
func (c crews) rouse() { c.Next(func(w *crew) { w.exec.rouse() }) }

// close ends all crews. No crew may be lent any more.
func (c crews) close() {
	c.Close(func(w *crew) {
		w.exec.close()
		for _, s := range w.solos {
			s.exec.close()
		}
	})
}

// Estimates of the work that one thread does in a nanosecond.
const (
	bytesPerNano = 8
	mulsPerNano  = 20
)

// workOf estimates, before a launch is prepared, how many nanoseconds it takes on one thread, and
// whether it is worth several threads.
func workOf(l *runtime.Launch) (nanos int64, several bool) {
	p, ok := l.Prog.(*program)
	if !ok || l.Rank > runtime.MaxRank {
		return 0, false // an error that prepareFor reports
	}
	points := int64(1)
	for _, n := range l.Dims[:max(l.Rank, 0)] {
		points *= n
	}
	if p.parts != nil {
		return points / mulsPerNano, points >= contract.ThreadMuls
	}
	return points * p.perItem / bytesPerNano, points*p.perItem >= threadBytes
}

// run runs launches on a crew, and passes the crew to waiting runs between launches. *w may be a
// different crew afterwards.
func (c crews) run(w **crew, list []ready) error {
	for len(list) > 0 {
		n, work := 0, int64(0)
		for ; n < len(list) && (n == 0 || work < turnWork); n++ {
			nanos, _ := workOf(list[n].l)
			work += nanos
		}
		if err := (*w).exec.run(list[:n]); err != nil {
			return err
		}
		if list = list[n:]; len(list) > 0 && c.Awaited() {
			c.GiveBack(*w)
			*w = c.Lend()
		}
	}
	return nil
}
