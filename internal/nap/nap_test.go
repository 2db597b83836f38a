package nap

import (
	"runtime"
	"testing"
	"time"
)

// TestFor: a nap takes time, and a negative one none. (How long a short one takes beyond that
// depends on the machine.)
func TestFor(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	Precise()
	For(-time.Hour)
	var slept time.Duration
	for range 100 { // a signal may end one early
		start := time.Now()
		For(100 * time.Microsecond)
		slept = max(slept, time.Since(start))
	}
	if slept < 100*time.Microsecond {
		t.Errorf("the longest of 100 naps of 100 µs took %v", slept)
	}
}
