package threads

import (
	"testing"
	"time"
)

// TestPause: a pause is short, so a waiting thread checks often.
func TestPause(t *testing.T) {
	best := time.Hour
	for range 100 {
		begin := time.Now()
		pause()
		best = min(best, time.Since(begin))
	}
	if best > 5*time.Microsecond {
		t.Errorf("a pause takes %v", best)
	}
}

// TestSpin: a loop waits for its time, and then no longer.
func TestSpin(t *testing.T) {
	begin := time.Now()
	n := 0
	for w := (spin{}); w.more(); n++ {
	}
	if d := time.Since(begin); d < spinFor || n < spinTurns {
		t.Errorf("%d turns in %v", n, d)
	}
}

func BenchmarkPause(b *testing.B) {
	for b.Loop() {
		pause()
	}
}
