package main

import (
	"slices"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// minRuns is how often a contestant runs at least, whatever the budget is, unless it is costly.
// Fewer runs have no useful median.
const minRuns = 3

// A contestant is one thing that is timed, in rounds with all others. A disturbance, such as
// another process or a lower clock, affects all contestants of a round, so ratios within a round
// hardly change.
type contestant struct {
	name string
	run  func() (time.Duration, error)
	// base contestants are those by which others are divided. They run in every round.
	base bool
	// users, if there are any, are the contestants that a base contestant runs for. It retires
	// when they do.
	users []*contestant
	// costly contestants need much of the budget for a single run. They are warmed up by their
	// first run only, and one timed run is enough.
	costly   bool
	counting bool // the warm-up is over

	rounds []int     // rounds it ran in
	times  []float64 // seconds, one per round it ran in
	err    error     // what stopped it
	out    bool
}

// interleave runs every contestant once per round, for at most runs rounds and about budget of
// time. If the next round would not fit, the costliest contestant that has its minRuns retires,
// and the cheaper ones continue: fewer runs are better than longer ones. A contestant whose run
// fails retires at once.
//
// progress, if not nil, is called before each run.
func interleave(now func() time.Time, budget time.Duration, runs int, cs []*contestant, progress func(round int, c *contestant)) {
	start := now()
	for _, c := range cs {
		c.counting = true
	}
	for round := range runs {
		for active(cs) && !fits(budget-now().Sub(start), cs) {
			if !dropCostliest(cs) {
				break // no contestant may retire yet
			}
		}
		if !active(cs) {
			return
		}
		retire(cs)
		for i := range cs {
			c := cs[(i+round)%len(cs)] // the order rotates, so no contestant always follows the same one
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

// active reports whether any contestant besides base ones still runs.
func active(cs []*contestant) bool {
	return slices.ContainsFunc(cs, func(c *contestant) bool { return !c.out && !c.base })
}

// retire retires base contestants whose users have all retired.
func retire(cs []*contestant) {
	for _, c := range cs {
		if c.base && len(c.users) > 0 && !active(c.users) {
			c.out = true
		}
	}
}

// fits reports whether one more round is expected to end within left.
func fits(left time.Duration, cs []*contestant) bool {
	round := 0.0
	for _, c := range cs {
		if !c.out && len(c.times) > 0 {
			round += paired.Median(c.times)
		}
	}
	return round <= left.Seconds()
}

// enough reports whether c has as many runs as it needs.
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

// pairs pairs the times of two contestants by round.
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
