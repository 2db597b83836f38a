package threads

import "time"

const (
	// spinFor is how long a thread waits awake for something that usually comes soon: a few times the
	// cost of waking it.
	spinFor = 30 * time.Microsecond
	// spinTurns is the number of pauses between two reads of the clock.
	spinTurns = 16
)

// spin measures how long a loop has waited. Its zero value begins with the first turn.
type spin struct {
	begin time.Time
	n     int
}

// more pauses, and reports whether less than spinFor has passed since the first turn.
func (w *spin) more() bool {
	pause()
	if w.n == 0 {
		w.begin = time.Now()
	}
	if w.n++; w.n%spinTurns != 0 {
		return true
	}
	return time.Since(w.begin) < spinFor
}
