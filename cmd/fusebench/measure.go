package main

import (
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// minRuns is what a contestant gets whatever the budget says, if it is not costly:
// the median of fewer is no median.
const minRuns = 3

// A contestant is one thing that is timed, in rounds with all others: what a
// round's neighbours suffer from (another process, a lower clock), all suffer
// from, and ratios inside a round stay.
type contestant struct {
	name string
	run  func() (time.Duration, error)
	// base contestants are what others are divided by: they run in every round.
	base bool
	// users, where there are any, are those that a base contestant runs for: it
	// is out when they are.
	users []*contestant
	// costly contestants, a single run of which takes much of the budget, are not
	// warmed up by more than their first run and are content with one timed run.
	costly bool

	rounds []int     // rounds it ran in
	times  []float64 // seconds, one per round it ran in
	err    error     // what stopped it
	out    bool
}

// interleave runs every contestant once per round, for at most runs rounds and
// about budget of time. Where the next round would not fit, the costliest
// contestant that had its minRuns is out, and the cheaper ones go on: fewer
// runs rather than longer. A contestant whose run fails is out at once.
//
// progress, where not nil, is told before each run.
func interleave(now func() time.Time, budget time.Duration, runs int, cs []*contestant, progress func(round int, c *contestant)) {
	start := now()
	for round := range runs {
		for active(cs) && !fits(budget-now().Sub(start), cs) {
			if !dropCostliest(cs) {
				break // nobody may leave yet
			}
		}
		if !active(cs) {
			return
		}
		retire(cs)
		for i := range cs {
			c := cs[(i+round)%len(cs)] // nobody is always right after the same one
			if c.out {
				continue
			}
			if progress != nil {
				progress(round, c)
			}
			d, err := c.run()
			if err != nil {
				c.err, c.out = err, true
				continue
			}
			c.rounds = append(c.rounds, round)
			c.times = append(c.times, d.Seconds())
		}
	}
}

// active says whether anybody but base contestants still runs.
func active(cs []*contestant) bool {
	for _, c := range cs {
		if !c.out && !c.base {
			return true
		}
	}
	return false
}

// retire takes out base contestants that nobody is compared with any more.
func retire(cs []*contestant) {
	for _, c := range cs {
		if c.base && len(c.users) > 0 && !active(c.users) {
			c.out = true
		}
	}
}

// fits says whether one more round is expected to end inside left.
func fits(left time.Duration, cs []*contestant) bool {
	round := 0.0
	for _, c := range cs {
		if !c.out && len(c.times) > 0 {
			round += paired.Median(c.times)
		}
	}
	return round <= left.Seconds()
}

// enough says whether c has the runs it is owed.
func (c *contestant) enough() bool {
	return len(c.times) >= minRuns || c.costly && len(c.times) > 0
}

func dropCostliest(cs []*contestant) bool {
	var costliest *contestant
	for _, c := range cs {
		if c.out || c.base || !c.enough() {
			continue
		}
		if costliest == nil || paired.Median(c.times) > paired.Median(costliest.times) {
			costliest = c
		}
	}
	if costliest == nil {
		return false
	}
	costliest.out = true
	return true
}

// pairs lines two contestants' times up by round.
func pairs(a, b *contestant) (as, bs []float64) {
	j := 0
	for i, round := range a.rounds {
		for j < len(b.rounds) && b.rounds[j] < round {
			j++
		}
		if j < len(b.rounds) && b.rounds[j] == round {
			as = append(as, a.times[i])
			bs = append(bs, b.times[j])
		}
	}
	return as, bs
}

// faster returns the one of two contestants with the lower median. Either may
// be nil or have no times.
func faster(a, b *contestant) *contestant {
	switch {
	case a == nil || len(a.times) == 0:
		return b
	case b == nil || len(b.times) == 0 || paired.Median(a.times) <= paired.Median(b.times):
		return a
	}
	return b
}
