//go:build !race

package millrace_test

// hotOpAllocations is above what recording an op allocates: one block, and now and then
// the memory of a list that grew.
const hotOpAllocations = 1.2
