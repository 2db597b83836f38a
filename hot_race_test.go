//go:build race

package millrace_test

// The race detector has sync.Pool drop what it is given now and then, so that it is
// allocated anew.
const hotOpAllocations = 2
