package spin

import (
	"testing"
	"time"
)

// TestPause: a pause is short, so a waiting thread checks often.
func TestPause(t *testing.T) {
	best := time.Hour
	for range 100 {
		begin := time.Now()
		Pause()
		best = min(best, time.Since(begin))
	}
	if best > 5*time.Microsecond {
		t.Errorf("a pause takes %v", best)
	}
}

// TestWait: a loop waits for its time, and then no longer.
func TestWait(t *testing.T) {
	begin := time.Now()
	n := 0
	for w := (Wait{}); w.More(); n++ {
	}
	if d := time.Since(begin); d < Long || n < turns {
		t.Errorf("%d turns in %v", n, d)
	}
}

func BenchmarkPause(b *testing.B) {
	for b.Loop() {
		Pause()
	}
}
