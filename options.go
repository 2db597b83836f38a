package millrace

import (
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/internal/debugflag"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Options configure a device; the zero value works. The fields, their zero
// values and their keys in the text form that String prints:
//
//	Device       driver's name; "": MILLRACE_DEVICE, else "cpu"   (before the colon)
//	Adapter      part of an adapter's name; "": the best one      adapter=llvmpipe
//	Isolate      a GPU's driver in a process of its own, so      isolate=on
//	             that one that aborts gives ErrDeviceLost
//	Subgroups    whether a GPU's shaders bring rows together by   subgroups=on|off
//	             subgroups, where the adapter has them
//	Threads      worker threads of the CPU, at most 1024;         threads=2
//	             0: GOMAXPROCS
//	Compile      who makes code of kernels, and when              compile=background|wait|off|native|c
//	Tier         which tier of the CPU device runs                tier=auto|0|1
//	Explore      whether a new segment waits for its best plan    explore=background|wait
//	Fusion       how ops become kernels                           fusion=on|greedy|off
//	Denormals    what the CPU's arithmetic makes of denormals     denormals=keep|flush
//	Tune         when the choices of a kernel are compared       tune=background|idle|wait|off
//	TuneBudget   time that this may take in all; 0: 10 s in the   tunebudget=2s
//	             background, without limit where it is waited for
//	QueueCap     ops after which eager code is cut, at most       queue=64
//	             256; 0: 64
//	MemoryLimit  bytes of device memory; 0: no limit              memory=512MiB
//	PinnedLimit  bytes that unwritten results may hold alive;     pinned=64MiB
//	             0: a quarter of MemoryLimit, or 1 GiB
//	Cache        directory for plans and compiled kernels, or     cache=off
//	             "off"; "": MILLRACE_CACHE, else millrace in
//	             the user's cache directory; one that cannot be
//	             used, such as a file, is told to Trace.Error and
//	             counted in Stats().Cache, and there is no cache
//	CacheLimit   bytes it may take; 0: 512 MiB                    cachelimit=64MiB
//	Check        run each new plan fused and op by op, compare    check
//	Lines        keep the caller's line of every op               lines
//	Report       remember what runs, for millrace.Report; times   report
//	             some runs launch by launch, which takes 1 to 3 %
//	Trace        hooks; nil: none                                 (not in the text)
//
// Validate reports every field that cannot be.
type Options = device.Options

// CompileMode says who makes code of the CPU device's kernels: the process, at once
// (machine code, where the processor has AVX2), or C compilers in the background, where
// there are any and the program was built with cgo. What there is no code of, or none
// yet, runs interpreted, with the same bits. Where C of kernels was compiled into the
// program (fusebench plans gen), they run by that, unless the mode is native.
type CompileMode = runtime.CompileMode

// The compile modes. Whatever the program says, MILLRACE_COMPILE=native in the
// environment forbids compilers, MILLRACE_COMPILE=c machine code of kernels, and
// MILLRACE_COMPILE=off both, and that of reductions and matmul.
const (
	CompileBackground CompileMode = runtime.CompileBackground // the default: the process where it can, else compilers
	CompileWait       CompileMode = runtime.CompileWait       // the same, and the first run waits for whatever compiles
	CompileOff        CompileMode = runtime.CompileOff        // nobody
	CompileNative     CompileMode = runtime.CompileNative     // the process: no compiler is started
	CompileC          CompileMode = runtime.CompileC          // compilers; reductions and matmul stay machine code
)

// Tier says which way of running kernels the CPU device uses.
type Tier = device.Tier

// The tiers.
const (
	TierAuto        Tier = device.TierAuto        // interpreted until compiled
	TierInterpreter Tier = device.TierInterpreter // tier 0 only
	TierCompiled    Tier = device.TierCompiled    // tier 1; runs wait for whatever compiles
)

// ExploreMode says when the best plan of a stretch of code never seen before is
// searched for. The numbers are the same whichever plan runs.
type ExploreMode = device.ExploreMode

// The explore modes. A device that waits for compilers waits for plans too, and
// so do devices that cannot run a kernel before it is compiled: GPUs.
const (
	ExploreBackground ExploreMode = device.ExploreBackground // run at once, swap the best plan in when it is found
	ExploreWait       ExploreMode = device.ExploreWait       // the first run waits
)

// TuneMode says when the choices that a device has of a kernel are timed, to
// find the fastest. The numbers are the same whichever runs.
type TuneMode = device.TuneMode

// The tune modes.
const (
	TuneBackground TuneMode = device.TuneBackground // of kernels that run often, while the device is idle, or for 5 % of the time
	TuneWait       TuneMode = device.TuneWait       // before a kernel's first run: for benchmarks
	TuneOff        TuneMode = device.TuneOff        // never; nor is used what another process found out
	TuneIdle       TuneMode = device.TuneIdle       // of kernels that run often, only while the device is idle
)

// Denormals says what arithmetic makes of denormal numbers of float32, float64 and
// bfloat16: see docs/numerics.md. GPUs do with them as they like.
type Denormals = ir.Denormals

// What becomes of denormals.
const (
	KeepDenormals  Denormals = ir.KeepDenormals  // IEEE 754: the default
	FlushDenormals Denormals = ir.FlushDenormals // zeros of their sign, and no slower than other numbers
)

// SubgroupMode says whether a GPU's shaders use subgroups, the invocations that run in
// step. Sums of rows may differ by it, within their tolerance.
type SubgroupMode = runtime.SubgroupMode

// The subgroup modes. WebGPU's shaders have none.
const (
	SubgroupsOn  SubgroupMode = runtime.SubgroupsOn  // where the adapter has them
	SubgroupsOff SubgroupMode = runtime.SubgroupsOff // never
)

// FusionMode says how recorded ops become kernels.
type FusionMode = device.FusionMode

// The fusion modes.
const (
	FusionOn     FusionMode = device.FusionOn     // search for the best plan
	FusionGreedy FusionMode = device.FusionGreedy // the cheap rule only
	FusionOff    FusionMode = device.FusionOff    // one kernel for each op
)

// ParseOptions reads what [Options.String] prints: "cpu",
// "cpu:threads=2,compile=wait". A key alone, as in "cpu:check", means true.
// The error lists every problem and, for an unknown key, the keys there are.
func ParseOptions(s string) (Options, error) { return device.ParseOptions(s) }

// withEnvironment completes o from MILLRACE_DEVICE, MILLRACE_COMPILE,
// MILLRACE_CACHE and MILLRACE_DEBUG.
func withEnvironment(o Options) (Options, error) {
	var errs []error
	if o.Device == "" {
		env, err := ParseOptions(os.Getenv("MILLRACE_DEVICE"))
		if err != nil {
			errs = append(errs, fmt.Errorf("MILLRACE_DEVICE: %w", err))
		}
		o = overlay(env, o)
		if o.Device == "" {
			o.Device = "cpu"
		}
	}
	switch c := os.Getenv("MILLRACE_COMPILE"); c {
	case "", "on":
	case "off", "native", "c":
		o = device.Forbid(o, c != "c", c != "native")
	default:
		errs = append(errs, fmt.Errorf("MILLRACE_COMPILE is %q: want on, off, native or c", c))
	}
	if o.Cache == "" {
		dir, err := plancache.Dir()
		if err != nil {
			dir = plancache.Off // an account without a home, as services have
			if t := o.Trace; t != nil && t.Error != nil {
				t.Error(err)
			}
		}
		o.Cache = dir
	}
	flags, err := debugflag.Get()
	if err != nil {
		errs = append(errs, err)
	}
	o.Check = o.Check || flags.Check
	o.Lines = o.Lines || flags.Lines
	if flags.Perfmap {
		if err := machine.StartPerfMap(); err != nil {
			errs = append(errs, fmt.Errorf("MILLRACE_DEBUG: %w", err))
		}
	}
	if flags.Log {
		o.Trace = bothTraces(o.Trace, LogTrace(nil))
	}
	if flags.Trace != "" {
		traceFile, err := sharedTrace(flags.Trace)
		if err != nil {
			errs = append(errs, fmt.Errorf("MILLRACE_DEBUG: %w", err))
		}
		o.Trace = bothTraces(o.Trace, traceFile)
	}
	if flags.Report != "" {
		if err := sharedReport(flags.Report); err != nil {
			errs = append(errs, fmt.Errorf("MILLRACE_DEBUG: %w", err))
		}
		o.Report = true
	}
	return o, errors.Join(append(errs, o.Validate())...)
}

// overlay is base with the fields that top sets.
func overlay(base, top Options) Options {
	b, t := reflect.ValueOf(&base).Elem(), reflect.ValueOf(top)
	for i := range t.NumField() {
		if f := t.Field(i); !f.IsZero() {
			b.Field(i).Set(f)
		}
	}
	return base
}

// Stats are a device's counters since it was opened: Ops recorded, Segments
// run, PlanHits of them by a known plan, Explorations (plans made), Searches
// (those of them made in the background), Tunings (kernels whose choices were
// timed), the TuneNanos that took and of these the TuneTaken from a program that did
// not pause, at most a twentieth of its time, Plans held, Layouts (times that a plan met
// sizes which it had not run with lately), Kernels launched by plans, InPlace outputs, Recomputes of unwritten results, Recordings,
// Resizes, Trials and Replays (see [Recording]), Aliases, Fallbacks after a fault, Unbuilt (of these, plans that could not be built, whose segments run op by op), Evictions of plans, Collections forced for memory,
// PinnedBytes and LiveBytes now, KernelNanos that launches took and the RoofShare of these that
// they would have taken at the nearer of the machine's peaks, multiply-adds and copies (where
// the device was opened with Report; 0 where a peak is not known); in Cache those of the cache on disk: Hits,
// Misses, Damaged (of the misses, those with a file that was no entry), Refused
// (directories and contents not used), Written, Evicted, Failed file operations,
// ReadNanos, BytesRead, BytesWritten and WritesDisabled, and those of bundles (see
// [UsePlans]): Bundled, entries found in one, and Foreign, entries of no use to
// the device; Damaged and Refused count theirs, too; and in Runtime the driver's: Launches,
// BytesRead, BytesWritten, Compiles, CompileFails,
// Dropped (queued compiles of kernels that nothing uses any more), Fallbacks, Tier0 launches,
// Hidden scores of attention that were not computed, since a mask hides them, Grouped launches that ran beside others of their list, each on one thread,
// Prepared launches of lists that were made ready once, as a [Recording]'s are,
// Waits of a GPU to learn of indices out of range, Allocs, AllocBytes, PeakBytes since [Device.ResetPeak], PoolBytes, PoolHits, CompileNanos,
// NativeKernels, variants of kernels that machine code was made of in the process, NativeBytes that it takes now, of all devices, and NativeRefused,
// phases that have no form in it: they stay interpreted, or go to C.
type Stats = device.Stats
