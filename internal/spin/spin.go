// Package spin lets a thread wait for a moment without sleeping.
package spin

import "time"

const (
	// Long is how long a thread waits awake for something that usually comes soon: a few times the
	// cost of waking it.
	Long = 30 * time.Microsecond
	// turns is the number of pauses between two reads of the clock.
	turns = 16
)

// Pause tells the processor, a few times, that this is a waiting loop: the other half of its core
// may use the resources meanwhile. It takes well below a microsecond, during which the goroutine
// cannot be stopped.
func Pause() { pause() }

// Wait measures how long a loop has waited. Its zero value begins with the first turn.
type Wait struct {
	begin time.Time
	n     int
}

// More pauses, and reports whether less than Long has passed since the first turn.
func (w *Wait) More() bool {
	Pause()
	if w.n == 0 {
		w.begin = time.Now()
	}
	if w.n++; w.n%turns != 0 {
		return true
	}
	return time.Since(w.begin) < Long
}
