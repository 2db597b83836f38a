// Package force makes the engine do what it would do seldom, so that tests see it:
// run every kernel by another choice than it would choose, and run out of room for
// plans. Nothing is forced outside tests.
//
// Engine part: no compatibility promise; use package millrace.
package force

import "sync/atomic"

// choice is the number that is forced, plus 1; 0: none.
var choice atomic.Int64

// SetChoice makes every unit of launches run by the choice with this number,
// counted from the device's own and modulo how many there are; a negative one
// ends it. Devices list all their choices then, worth a choice or not.
func SetChoice(k int) { choice.Store(int64(max(k, -1)) + 1) }

// Choice is the number that is forced.
func Choice() (k int, forced bool) {
	n := choice.Load()
	return int(n - 1), n > 0
}

// plans is how many plans a device keeps; 0: as many as it would.
var plans atomic.Int64

// SetPlans bounds the plans of devices that are opened from now on; 0 ends it.
func SetPlans(n int) { plans.Store(int64(n)) }

// Plans is how many a device keeps that else keeps so many.
func Plans(most int) int { return bounded(&plans, most) }

// steps is how many ops a step holds at most, parts how many are searched at once; 0: as
// they would.
var steps, parts atomic.Int64

// SetSteps bounds the ops of a step in a scope or a Recording, on streams that are opened
// from now on, and of the parts in which long segments are searched; 0 ends it.
func SetSteps(step, part int) {
	steps.Store(int64(step))
	parts.Store(int64(part))
}

// Step is how many ops a step holds that else holds so many.
func Step(most int) int { return bounded(&steps, most) }

// Part is how many ops are searched at once, where else it is so many.
func Part(most int) int { return bounded(&parts, most) }

// pieces is whether every concatenation is written in pieces.
var pieces atomic.Bool

// SetPieces has every concatenation written in pieces, however small; false ends it.
func SetPieces(all bool) { pieces.Store(all) }

// Pieces reports that.
func Pieces() bool { return pieces.Load() }

func bounded(by *atomic.Int64, most int) int {
	if n := by.Load(); n > 0 {
		return int(n)
	}
	return most
}
