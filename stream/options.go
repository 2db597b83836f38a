package stream

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// FusionMode says how segments become kernels.
type FusionMode uint8

const (
	FusionOn     FusionMode = iota // search for the best plan
	FusionGreedy                   // the cheap rule only
	FusionOff                      // one kernel per op
)

// ExploreMode says when the best plan of a new segment is searched for.
type ExploreMode uint8

const (
	// ExploreBackground: the segment runs at once, by the best plan where that
	// is quickly found, else by a greedy one until the search in the background
	// has found the best.
	ExploreBackground ExploreMode = iota
	// ExploreWait: the first run waits for the search. So it does where the
	// program waits for compilers.
	ExploreWait
)

// Options configure a device. The zero value opens the default device with
// everything automatic.
type Options struct {
	Device      string              // driver name; "": MILLRACE_DEVICE, else "cpu"
	Adapter     string              // part of an adapter's name, where there are several
	Threads     int                 // CPU worker threads, at most 1024; 0: GOMAXPROCS
	Compile     runtime.CompileMode // when the CPU's tier 1 compiles
	Tier        Tier                // which tier of the CPU device runs
	Explore     ExploreMode         // whether a segment's first run waits for its best plan
	Fusion      FusionMode          //
	Tune        TuneMode            // when ways to run a kernel are compared
	TuneBudget  time.Duration       // that this may take in all; 0: 10 s in the background, else no limit
	QueueCap    int                 // ops after which a segment is cut; 0: 64, growing to a loop's end
	MemoryLimit int64               // bytes of device memory; 0: no limit
	PinnedLimit int64               // bytes that recipes may pin; 0: a quarter of MemoryLimit, or 1 GiB
	Cache       string              // directory for what outlives the process; "" or "off": none
	CacheLimit  int64               // bytes it may take; 0: 512 MiB
	Check       bool                // run every new plan fused and op by op once, and compare
	Lines       bool                // remember the caller's line of every op, not only of bad ones
	Trace       *Trace              // hooks; nil: none
}

// Validate reports all that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Threads", int64(o.Threads)}, {"QueueCap", int64(o.QueueCap)},
		{"MemoryLimit", o.MemoryLimit}, {"PinnedLimit", o.PinnedLimit}, {"CacheLimit", o.CacheLimit}, {"TuneBudget", int64(o.TuneBudget)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("option %s is negative: %d", n.name, n.value))
		}
	}
	for _, e := range []struct {
		name       string
		value, max uint8
	}{
		{"Compile", uint8(o.Compile), uint8(runtime.CompileOff)}, {"Tier", uint8(o.Tier), uint8(TierCompiled)},
		{"Explore", uint8(o.Explore), uint8(ExploreWait)}, {"Fusion", uint8(o.Fusion), uint8(FusionOff)},
		{"Tune", uint8(o.Tune), uint8(TuneIdle)},
	} {
		if e.value > e.max {
			errs = append(errs, fmt.Errorf("option %s has no value %d", e.name, e.value))
		}
	}
	for _, n := range []struct {
		name       string
		value, max int
	}{{"Threads", o.Threads, maxThreads}, {"QueueCap", o.QueueCap, maxQueueCap}} {
		if n.value > n.max {
			errs = append(errs, fmt.Errorf("option %s is above %d: %d", n.name, n.max, n.value))
		}
	}
	errs = append(errs, o.conflicts()...)
	return errors.Join(errs...)
}

// maxThreads is more than machines have processors: a larger number is a slip, and so
// many threads, with the memory of each, would be the machine's end.
const maxThreads = 1024

// maxQueueCap keeps relative ids below 2^15, up to which remembered plans name
// results that they write because they were asked for (fusion.Record): a queue has
// up to 4 times the cap's entries, each of up to 4 ids, and the last
// op may add the recipes of 3 operands, each of one such segment.
const maxQueueCap = 256

// Tier chooses how the CPU device runs kernels.
type Tier uint8

const (
	TierAuto        Tier = iota // interpreted until compiled
	TierInterpreter             // tier 0 only
	TierCompiled                // tier 1; runs wait for the compiler
)

// Trace has a hook for each thing the engine does. Hooks are called
// synchronously and must not call the engine. Nil ones are skipped. A panic goes
// on where the engine's work for the call ends.
type Trace struct {
	Flush   func(FlushEvent)
	Explore func(ExploreEvent)
	Compile func(CompileEvent)
	Tune    func(TuneEvent)
	Cache   func(CacheEvent)
	Error   func(error) // once per fault
}

// FlushEvent tells of one segment that ran.
type FlushEvent struct {
	Stream  uint64 // number of the stream on its device
	Reason  string // "read", "sync", "cap", "hand-over"
	Ops     int
	Kernels int
	Hit     bool   // the plan was known
	Plan    string // how it was made: "best", "greedy", "unfused"
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

// Stats are a device's counters since it was opened: the engine's own, in Cache
// those of the cache on disk, and in Runtime the driver's.
type Stats struct {
	Ops          int64 // recorded
	Segments     int64 // run
	PlanHits     int64 // segments whose plan was known
	Explorations int64 // plans made
	Tunings      int64 // kernels whose variants were timed
	TuneNanos    int64 // that this took
	TuneTaken    int64 // of these, nanoseconds taken from a program that did not pause: at most a twentieth of its time
	Searches     int64 // of these, better ones made in the background
	Plans        int64 // held now
	Kernels      int64 // launches asked for by plans
	InPlace      int64 // outputs that reused an operand's buffer
	Recomputes   int64 // virtual tensors made again from their recipe
	Aliases      int64 // results that are views of other memory
	Fallbacks    int64 // plans or kernels replaced by a slower path after a fault
	Evictions    int64 // plans dropped from the bounded store
	Collections  int64 // garbage collections forced for device memory
	PinnedBytes  int64 // held by recipes now
	LiveBytes    int64 // held by tensors now
	Cache        plancache.Stats
	Runtime      runtime.Stats
}
