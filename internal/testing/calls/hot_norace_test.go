//go:build !race

package calls_test

// hotOpAllocations is slightly more than recording an op allocates: one block, and sometimes the
// memory of a growing list.
const hotOpAllocations = 1.2

// gradAllocations is one more than an op with its derivative allocates.
const gradAllocations = 10.4
