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
	Device      string               // driver name; "": MILLRACE_DEVICE, else "cpu"
	Adapter     string               // part of an adapter's name, where there are several
	Isolate     bool                 // whether a GPU's driver has a process of its own
	Subgroups   runtime.SubgroupMode // whether a GPU's shaders use subgroups
	Threads     int                  // CPU worker threads, at most 1024; 0: GOMAXPROCS
	Compile     runtime.CompileMode  // who makes code for the CPU's tier 1, and whether runs wait for it
	Tier        Tier                 // which tier of the CPU device runs
	Explore     ExploreMode          // whether a segment's first run waits for its best plan
	Fusion      FusionMode           //
	Denormals   ir.Denormals         // what the CPU's arithmetic makes of denormal numbers
	Tune        TuneMode             // when ways to run a kernel are compared
	TuneBudget  time.Duration        // that this may take in all; 0: 10 s in the background, else no limit
	QueueCap    int                  // ops after which eager code is cut, at most 256; 0: 64, growing to a loop's end
	MemoryLimit int64                // bytes of device memory; 0: no limit
	PinnedLimit int64                // bytes that recipes may pin; 0: a quarter of MemoryLimit, or 1 GiB
	Cache       string               // directory of the plan cache; "" or "off": none
	CacheLimit  int64                // bytes it may take; 0: 512 MiB
	Check       bool                 // run every new plan fused and op by op once, and compare
	Lines       bool                 // remember the caller's line of every op, not only of bad ones
	Report      bool                 // remember what runs, for a report
	Trace       *Trace               // hooks; nil: none
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
		{"Compile", uint8(o.Compile), uint8(runtime.CompileC)}, {"Tier", uint8(o.Tier), uint8(TierCompiled)},
		{"Explore", uint8(o.Explore), uint8(ExploreWait)}, {"Fusion", uint8(o.Fusion), uint8(FusionOff)},
		{"Subgroups", uint8(o.Subgroups), uint8(runtime.SubgroupsOff)}, {"Tune", uint8(o.Tune), uint8(TuneIdle)}, {"Denormals", uint8(o.Denormals), uint8(ir.FlushDenormals)},
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

// Forbid takes compilers, or machine code made in the process, from those who make
// code by o. Who waits for code waits for the others'.
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

// maxThreads is more than machines have processors: a larger number is a slip, and so
// many threads, with the memory of each, would be the machine's end.
const maxThreads = 1024

// maxQueueCap keeps relative ids below 2^15, up to which remembered plans name
// results that they write because they were asked for (fusion.Record): a queue has
// up to 4 times the cap's items, each of up to 4 ids, and the last
// op may add the recipes of 3 operands, each of one such segment.
const maxQueueCap = 256

// Tier chooses how the CPU device runs kernels.
type Tier uint8

const (
	TierAuto        Tier = iota // interpreted until compiled
	TierInterpreter             // tier 0 only
	TierCompiled                // tier 1; runs wait for whatever compiles
)

// TuneMode says when ways to run a kernel are compared.
type TuneMode uint8

const (
	TuneBackground TuneMode = iota // while nothing else runs, and for a small share of the time between runs
	TuneWait                       // before the first run
	TuneOff                        // never; results of earlier processes are not used either
	TuneIdle                       // while nothing else runs
)
