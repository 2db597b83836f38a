// Package force makes the engine run every kernel by another choice than it
// would choose, so that tests see all of them. Nothing is forced outside tests.
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
