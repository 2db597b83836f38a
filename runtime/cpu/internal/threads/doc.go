// Package threads divides work among the processors.
//
// Input: a Job, which can do any range of its units. Output: each unit is done once, on some thread.
// Read pool.go first. The other files are parts of a Pool: threads that wait spin for a moment
// (spin.go) and then sleep (park.go), and on Linux keep off the processor of the thread that wakes
// them (place_linux.go).
//
// Runs of a device share its pools: a Lender passes them from run to run in order of arrival, and a
// Crowd tells a run whether it has the processors for itself.
//
// Engine part: no compatibility promise; use package millrace.
package threads
