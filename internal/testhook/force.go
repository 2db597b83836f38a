package testhook

import "sync/atomic"

// choice is the forced number plus 1; 0: none.
var choice atomic.Int64

// SetChoice makes every unit of launches run by the choice with this number, counted from the
// device's own and modulo the number of choices; a negative number ends it. Meanwhile devices list
// choices for all launches.
func SetChoice(k int) { choice.Store(int64(max(k, -1)) + 1) }

// Choice is the forced number.
func Choice() (k int, forced bool) {
	n := choice.Load()
	return int(n - 1), n > 0
}

// plans is the number of plans that a device keeps; 0: the default.
var plans atomic.Int64

// SetPlans bounds the plans of devices that are opened from now on; 0 ends it.
func SetPlans(n int) { plans.Store(int64(n)) }

// Plans is the number of plans that a device keeps; most is the default.
func Plans(most int) int { return bounded(&plans, most) }

// steps is the largest number of ops of a step, parts that of a searched part; 0: the defaults.
var steps, parts atomic.Int64

// SetSteps bounds the ops of a step in a scope or a Recording, on streams opened from now on, and
// the ops of the parts in which long segments are searched; 0 ends it.
func SetSteps(step, part int) {
	steps.Store(int64(step))
	parts.Store(int64(part))
}

// Step is the largest number of ops of a step; most is the default.
func Step(most int) int { return bounded(&steps, most) }

// Part is the largest number of ops searched at once; most is the default.
func Part(most int) int { return bounded(&parts, most) }

// pieces is set if every concatenation is written in pieces.
var pieces atomic.Bool

// SetPieces makes every concatenation be written in pieces, whatever its size; false ends it.
func SetPieces(all bool) { pieces.Store(all) }

// Pieces reports whether SetPieces is in effect.
func Pieces() bool { return pieces.Load() }

func bounded(by *atomic.Int64, most int) int {
	if n := by.Load(); n > 0 {
		return int(n)
	}
	return most
}

// exchanged is set if bound recordings exchange the memory of results of any size.
var exchanged atomic.Bool

// SetExchange makes bound recordings exchange the memory of a result, whatever its size, where they
// would copy it; false ends it.
func SetExchange(all bool) { exchanged.Store(all) }

// Exchange is the least size in bytes of a result whose memory is exchanged; least is the default.
func Exchange(least int64) int64 {
	if exchanged.Load() {
		return 1
	}
	return least
}
