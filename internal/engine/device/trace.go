package device

import (
	"time"
)

// Trace has a hook for each kind of engine event. The engine calls hooks synchronously, and a hook
// must not call the engine. Nil hooks are skipped. A panic of a hook continues when the engine's
// work for the current call ends.
type Trace struct {
	Flush   func(FlushEvent)
	Run     func(RunEvent)
	HostOp  func(HostOpEvent)
	Explore func(ExploreEvent)
	Compile func(CompileEvent)
	Tune    func(TuneEvent)
	Cache   func(CacheEvent)
	Error   func(error) // once per fault
}

// FlushEvent describes one segment that ran.
type FlushEvent struct {
	Device  uint64 // number of the device in the process
	Stream  uint64 // number of the stream on its device
	Segment uint64 // its number on the device
	Reason  string // "read", "sync", "cap", "hand-over"
	Ops     int
	Kernels int
	Hit     bool   // the plan was known
	Plan    string // how the plan was made: "best", "greedy", "unfused"
	Start   time.Time
	Elapsed time.Duration
}

// RunEvent describes launches that ran, or that an asynchronous device accepted.
type RunEvent struct {
	Device   uint64
	Stream   uint64 // 0: no stream
	Segment  uint64 // the launches' segment, or the first of several; 0 if not known
	Kernels  int
	Launches []LaunchEvent // each launch, in runs that are timed launch by launch: see profile.List.Due
	Start    time.Time
	Elapsed  time.Duration
}

// LaunchEvent describes one launch.
type LaunchEvent struct {
	Kernel  string // key, in hex
	Name    string // made of the names of its ops
	Chain   int    // number of launches that ran together tile by tile, this one first
	Start   time.Time
	Elapsed time.Duration
}

// HostOpEvent describes one run of a host op, such as a collective of package dist.
type HostOpEvent struct {
	Device  uint64
	Stream  uint64 // of its operand
	Op      string
	Bytes   int64 // of its operand
	Start   time.Time
	Elapsed time.Duration // from there, where the operand is ready and earlier ones of the lane are done, to the result
	Err     error
}

// ExploreEvent describes a new plan.
type ExploreEvent struct {
	Ops        int
	Kernels    int
	Plan       string // how it was made: "best", "greedy", "unfused"
	Background bool   // the program did not wait for it
	Elapsed    time.Duration
}

// CompileEvent describes a kernel that a compiler finished, or failed to compile.
type CompileEvent struct {
	Kernel  string // key, in hex
	Elapsed time.Duration
	Err     error
}

// TuneEvent describes a step of tuning.
type TuneEvent struct {
	Kernel    string // key, in hex
	Candidate string // the way to run the kernel
	// Step is "checked": it gives the results of the device's own way; "timed": a sample of runs
	// was timed; "refused"; or "chosen": launches use it from now on.
	Step    string
	Known   bool          // chosen by the timings of an earlier process or of a bundle
	Runs    int           // number of runs in the sample
	Elapsed time.Duration // time of one run
	Err     error         // reason for "refused"
}

// CacheEvent describes one action of the cache on disk or of a bundle, or its failure.
type CacheEvent struct {
	Kind    string // of the entry: "plan", "tuning", "object", "compiler"; "" for the cache itself
	Outcome string // "hit", "miss", "damaged", "refused", "written", "evicted" or "failed"; of bundles "bundled" or "foreign"
	Bytes   int64  // of the entry
	Elapsed time.Duration
	Err     error
}
