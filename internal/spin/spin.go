// Package spin is what a thread does that waits for a moment without sleeping.
package spin

import "time"

const (
	// Long is how long a thread waits awake for what comes soon as a rule: a few times
	// what waking it takes.
	Long = 30 * time.Microsecond
	// turns is how often a waiting loop pauses between two looks at the clock.
	turns = 16
)

// Pause tells the processor, a few times, that this is a loop which waits: the other
// half of its core may have it meanwhile. It takes well below a microsecond, in which
// the goroutine cannot be stopped.
func Pause() { pause() }

// Wait is how long a loop has waited so far. Its zero value begins with the first turn.
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
