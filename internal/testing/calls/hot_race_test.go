//go:build race

package calls_test

// These numbers are larger here, because the race detector makes sync.Pool drop some of its
// objects, which are then allocated again.
const (
	hotOpAllocations = 2
	gradAllocations  = 16
)
