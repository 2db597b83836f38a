// Package replay repeats launches of a prepared list.
//
// Input: a launch, and a function of the driver that walks it. Output: a Launch, which calls what
// the walk called. Read launch.go first.
//
// The operands, tiles and plans of a prepared launch are the same in each run; only the addresses of
// buffers change. So the first run is walked with a Tape, to which the walkers report calls of
// machine code with their frames, and the Go work between the calls. Each later run patches the
// addresses in the frames, and makes the same calls.
//
// Recordings are bounded in each launch and, by a Budget, in all launches of a device.
//
// Engine part: no compatibility promise; use package millrace.
package replay
