package threads

import "sync/atomic"

// Crowd tells a run whether other runs share the processors.
type Crowd struct {
	running atomic.Int32
	seen    atomic.Int32 // number of further runs that still expect others
}

// crowdFor is how many runs must pass alone before other runs are no longer expected: a program
// records operations between two runs.
const crowdFor = 32

// Enter begins a run, and reports whether others run, or did so recently. Leave ends the run.
func (c *Crowd) Enter() bool {
	if c.running.Add(1) > 1 {
		c.seen.Store(crowdFor)
		return true
	}
	if c.seen.Load() > 0 {
		return c.seen.Add(-1) >= 0
	}
	return false
}

// Leave ends a run.
func (c *Crowd) Leave() { c.running.Add(-1) }
