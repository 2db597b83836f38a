//go:build race

package calls_test

// hotOpAllocations is larger here, because the race detector makes sync.Pool drop some of its
// objects, which are then allocated again.
const hotOpAllocations = 2
