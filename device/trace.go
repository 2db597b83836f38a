package device

import (
	"time"
)

// Trace has a hook for each thing the engine does. Hooks are called
// synchronously and must not call the engine. Nil ones are skipped. A panic goes
// on where the engine's work for the call ends.
type Trace struct {
	Flush   func(FlushEvent)
	Run     func(RunEvent)
	Explore func(ExploreEvent)
	Compile func(CompileEvent)
	Tune    func(TuneEvent)
	Cache   func(CacheEvent)
	Error   func(error) // once per fault
}

// FlushEvent tells of one segment that ran.
type FlushEvent struct {
	Device  uint64 // number of the device in the process
	Stream  uint64 // number of the stream on its device
	Segment uint64 // its number on the device
	Reason  string // "read", "sync", "cap", "hand-over"
	Ops     int
	Kernels int
	Hit     bool   // the plan was known
	Plan    string // how it was made: "best", "greedy", "unfused"
	Start   time.Time
	Elapsed time.Duration
}

// RunEvent tells of launches that ran, or that a device that works by itself was given.
type RunEvent struct {
	Device   uint64
	Stream   uint64 // 0: of none
	Segment  uint64 // whose launches they are, or the first of several segments; 0 where that is not known
	Kernels  int
	Launches []LaunchEvent // one by one, in runs that are timed so: see profile.List.Due
	Start    time.Time
	Elapsed  time.Duration
}

// LaunchEvent tells of one launch.
type LaunchEvent struct {
	Kernel  string // key, in hex
	Name    string // of its ops
	Chain   int    // how many launches ran together tile by tile, this one first
	Start   time.Time
	Elapsed time.Duration
}

// ExploreEvent tells of a plan that was made.
type ExploreEvent struct {
	Ops        int
	Kernels    int
	Plan       string // how it was made: "best", "greedy", "unfused"
	Background bool   // the program did not wait for it
	Elapsed    time.Duration
}

// CompileEvent tells of a kernel that a compiler finished, or failed.
type CompileEvent struct {
	Kernel  string // key, in hex
	Elapsed time.Duration
	Err     error
}

// TuneEvent tells of a step of tuning.
type TuneEvent struct {
	Kernel    string // key, in hex
	Candidate string // the way to run it
	// Step: "checked", it gives the results of the device's own way; "timed", a
	// sample of runs was taken; "refused"; "chosen", launches run by it from now on.
	Step    string
	Known   bool          // it was chosen by what an earlier process timed, or a bundle
	Runs    int           // of the sample
	Elapsed time.Duration // a run
	Err     error         // why it was refused
}

// CacheEvent tells of one thing that the cache on disk, or a bundle, did or
// could not do.
type CacheEvent struct {
	Kind    string // of the entry: "plan", "tuning", "object", "compiler"; "" for the cache itself
	Outcome string // "hit", "miss", "damaged", "refused", "written", "evicted" or "failed"; of bundles "bundled" or "foreign"
	Bytes   int64  // of the entry
	Elapsed time.Duration
	Err     error
}
