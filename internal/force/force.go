// Package force makes the engine run every kernel by another variant than it
// would choose, so that tests see all of them. Nothing is forced outside tests.
//
// Engine part: no compatibility promise; use package millrace.
package force

import "sync/atomic"

// variant is the number that is forced, plus 1; 0: none.
var variant atomic.Int64

// SetVariant makes every unit of launches run by the variant with this number,
// counted from the device's own and modulo how many there are; a negative one
// ends it. Devices list all their variants then, worth a choice or not.
func SetVariant(k int) { variant.Store(int64(max(k, -1)) + 1) }

// Variant is the number that is forced.
func Variant() (k int, forced bool) {
	n := variant.Load()
	return int(n - 1), n > 0
}
