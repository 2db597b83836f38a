package procs

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
)

// Use sets GOMAXPROCS for a test.
func Use(t testing.TB, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// Allocations returns the average number of allocations of f on all processors;
// testing.AllocsPerRun measures on one. It is the lowest of a few averages: the scheduler allocates
// too, for threads that sleep while other processes take the processors.
func Allocations(f func()) float64 {
	const runs, averages = 20, 5
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f()
	least := math.Inf(1)
	for range averages {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			f()
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/runs)
	}
	return least
}
