package device

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// FusionMode says how segments become kernels.
type FusionMode uint8

const (
	FusionOn     FusionMode = iota // search for the best plan
	FusionGreedy                   // the cheap rule only
	FusionOff                      // one kernel per op
)

// ExploreMode says when the engine searches the best plan of a new segment.
type ExploreMode uint8

const (
	// ExploreBackground: the segment runs at once. It uses the best plan if that is found quickly;
	// else a greedy plan until the background search has found the best one.
	ExploreBackground ExploreMode = iota
	// ExploreWait: the first run waits for the search. This is also the behavior if the program
	// waits for compilers.
	ExploreWait
)

// Options configure a device. The zero value opens the default device with
// everything automatic.
type Options struct {
	Device      string                // driver name; "": MILLRACE_DEVICE, else "cpu"
	Adapter     string                // part of an adapter's name, to choose among several
	Isolate     bool                  // run a GPU's driver in a process of its own
	Subgroups   runtime.SubgroupMode  // whether a GPU's shaders use subgroups
	Narrow      runtime.NarrowMode    // whether elements of 8 and 16 bits take their own size in a GPU's memory
	Matrices    runtime.MatrixMode    // whether a GPU's shaders multiply by matrix units
	Precision   runtime.PrecisionMode // how a GPU multiplies float32 numbers
	Threads     int                   // CPU worker threads, at most 1024; 0: GOMAXPROCS
	Compile     runtime.CompileMode   // what makes code for the CPU's tier 1, and whether runs wait for it
	Tier        Tier                  // which tier of the CPU device runs
	Explore     ExploreMode           // whether a segment's first run waits for its best plan
	Fusion      FusionMode            //
	Denormals   ir.Denormals          // how the CPU's arithmetic treats denormal numbers
	Tune        TuneMode              // when ways to run a kernel are compared
	TuneBudget  time.Duration         // most time for tuning in all; 0: 10 s in the background, else no limit
	QueueCap    int                   // ops after which eager code is cut, at most 256; 0: 64, growing to a loop's end
	MemoryLimit int64                 // bytes of device memory; 0: no limit
	PinnedLimit int64                 // bytes that recipes may pin; 0: a quarter of MemoryLimit, or 1 GiB
	Cache       string                // directory of the plan cache; "" or "off": none
	CacheLimit  int64                 // most bytes of the plan cache; 0: 512 MiB
	Check       bool                  // run every new plan fused and op by op once, and compare
	Lines       bool                  // store the caller's line of every op, not only of failed ones
	Report      bool                  // record what runs, for a report
	Trace       *Trace                // hooks; nil: none
}

// Validate returns an error that lists all problems of the options.
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
		{"Compile", uint8(o.Compile), uint8(runtime.CompileC)}, {"Tier", uint8(o.Tier), uint8(TierCompiled)},
		{"Explore", uint8(o.Explore), uint8(ExploreWait)}, {"Fusion", uint8(o.Fusion), uint8(FusionOff)},
		{"Subgroups", uint8(o.Subgroups), uint8(runtime.SubgroupsOff)}, {"Narrow", uint8(o.Narrow), uint8(runtime.NarrowOff)}, {"Matrices", uint8(o.Matrices), uint8(runtime.MatricesOff)}, {"Precision", uint8(o.Precision), uint8(runtime.PrecisionBF16x3)}, {"Tune", uint8(o.Tune), uint8(TuneIdle)}, {"Denormals", uint8(o.Denormals), uint8(ir.FlushDenormals)},
	} {
		if e.value > e.max {
			errs = append(errs, fmt.Errorf("option %s: unknown value %d", e.name, e.value))
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

// Forbid removes compilers, machine code made in the process, or both from o.Compile. A mode that
// waits for code then waits for the other kind.
func Forbid(o Options, compilers, native bool) Options {
	c, n := o.Compile.C() && !compilers, o.Compile.Native() && !native
	switch {
	case c && n:
		return o
	case !c && !n:
		o.Compile = runtime.CompileOff
		if o.Tier == TierCompiled {
			o.Tier = TierAuto
		}
		return o
	}
	if o.Compile == runtime.CompileWait && o.Tier == TierAuto {
		o.Tier = TierCompiled
	}
	if o.Compile = runtime.CompileC; n {
		o.Compile = runtime.CompileNative
	}
	return o
}

// maxThreads is more than machines have processors. A larger number is a mistake, and the memory of
// so many threads could bring the machine down.
const maxThreads = 1024

// maxQueueCap keeps relative ids below 2^15, the limit of the ids by which remembered plans name
// requested results (fusion.Record). A queue holds up to 4 times the cap's items, each with up to 4
// ids, and the last op may add the recipes of 3 operands, each as long as such a segment.
const maxQueueCap = 256

// Tier chooses how the CPU device runs kernels.
type Tier uint8

const (
	TierAuto        Tier = iota // interpreted until compiled
	TierInterpreter             // tier 0 only
	TierCompiled                // tier 1; runs wait for the code
)

// TuneMode says when the tuner compares ways to run a kernel.
type TuneMode uint8

const (
	TuneBackground TuneMode = iota // while nothing else runs, and for a small share of the time between runs
	TuneWait                       // before the first run
	TuneOff                        // never; results of earlier processes are not used either
	TuneIdle                       // while nothing else runs
)
