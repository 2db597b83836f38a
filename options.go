package millrace

import (
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/millrace-go/millrace/internal/debugflag"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Options configure a device. The zero value works. The fields, their zero values and their keys
// in the text that String prints are:
//
//	Device       driver's name; "": MILLRACE_DEVICE, else "cpu"   (before the colon)
//	Adapter      part of an adapter's name; "": the best one      adapter=llvmpipe
//	Isolate      run a GPU's driver in a process of its own:      isolate=on
//	             if it aborts, the error is ErrDeviceLost
//	Subgroups    whether a GPU's shaders reduce rows by           subgroups=on|off
//	             subgroups, if the adapter has them
//	Narrow       whether elements of 8 and 16 bits take their     narrow=on|off
//	             own size in a GPU's memory, if shaders can
//	             access them there
//	Matrices     whether a GPU's shaders multiply 16-bit floats   matrices=on|off
//	             by matrix units, if the adapter has some
//	Precision    whether a GPU's matrix units multiply float32    precision=full|bf16x6|bf16x3
//	             numbers in parts, faster and less precise
//	Threads      worker threads of the CPU, at most 1024;         threads=2
//	             0: GOMAXPROCS
//	Compile      how kernels are compiled, and when               compile=background|wait|off|native|c
//	Tier         which tier of the CPU device runs                tier=auto|0|1
//	Explore      whether a new segment waits for its best plan    explore=background|wait
//	Fusion       how ops become kernels                           fusion=on|greedy|off
//	Denormals    how the CPU's arithmetic treats denormals        denormals=keep|flush
//	Tune         when ways to run a kernel are compared           tune=background|idle|wait|off
//	TuneBudget   most time for these comparisons in all; 0: 10 s  tunebudget=2s
//	             in the background, no limit if runs wait for them
//	QueueCap     number of ops after which a segment is cut, at   queue=64
//	             most 256; 0: 64
//	MemoryLimit  bytes of device memory; 0: no limit              memory=512MiB
//	PinnedLimit  bytes kept alive to recompute unwritten results; pinned=64MiB
//	             0: a quarter of MemoryLimit, or 1 GiB
//	Cache        directory for plans and compiled kernels, or     cache=off
//	             "off"; "": MILLRACE_CACHE, else millrace in
//	             the user's cache directory. If it cannot be
//	             used, there is no cache: Trace.Error gets the
//	             error, and Stats().Cache counts it
//	CacheLimit   most bytes of the cache; 0: 512 MiB              cachelimit=64MiB
//	Check        run each new plan fused and op by op, compare    check
//	Lines        keep the caller's line of every op               lines
//	Report       record what runs, for millrace.Report; this      report
//	             times some runs by launch, and costs 1 to 3 %
//	Trace        hooks; nil: none                                 (not in the text)
//
// Validate reports every invalid field.
type Options = device.Options

// CompileMode says how the CPU device's kernels are compiled. The process itself makes machine
// code at once, if the processor has AVX2. C compilers make code in the background, if the
// machine has one and the program was built with cgo. A kernel that has no code, or none yet, is
// interpreted, with the same bits. Kernels that were compiled into the program (fusebench plans
// gen) run by that code, unless the mode is native.
type CompileMode = runtime.CompileMode

// The compile modes. The environment overrides them: MILLRACE_COMPILE=native forbids compilers,
// MILLRACE_COMPILE=c forbids machine code of kernels, and MILLRACE_COMPILE=off forbids both, and
// also the machine code of reductions and matmul.
const (
	CompileBackground CompileMode = runtime.CompileBackground // the default: the process if it can, else compilers
	CompileWait       CompileMode = runtime.CompileWait       // the same, but the first run waits for the code
	CompileOff        CompileMode = runtime.CompileOff        // no code: kernels are interpreted
	CompileNative     CompileMode = runtime.CompileNative     // the process only: no compiler is started
	CompileC          CompileMode = runtime.CompileC          // compilers only; reductions and matmul stay machine code
)

// Tier says how the CPU device runs kernels.
type Tier = device.Tier

// The tiers.
const (
	TierAuto        Tier = device.TierAuto        // interpreted until compiled
	TierInterpreter Tier = device.TierInterpreter // tier 0 only
	TierCompiled    Tier = device.TierCompiled    // tier 1; runs wait for the code
)

// ExploreMode says whether the first run of a new segment of code waits until the best plan is
// found. The results are the same with any plan.
type ExploreMode = device.ExploreMode

// The explore modes. A device that waits for compilers waits for plans too, and so do devices
// that cannot run a kernel before it is compiled: GPUs.
const (
	ExploreBackground ExploreMode = device.ExploreBackground // run at once, and use the best plan when it is found
	ExploreWait       ExploreMode = device.ExploreWait       // the first run waits
)

// TuneMode says when a device times its ways to run a kernel, to find the fastest. The results
// are the same with each of them.
type TuneMode = device.TuneMode

// The tune modes.
const (
	TuneBackground TuneMode = device.TuneBackground // kernels that run often, while the device is idle or for 5 % of the time
	TuneWait       TuneMode = device.TuneWait       // before a kernel's first run: for benchmarks
	TuneOff        TuneMode = device.TuneOff        // never, and the timings of other processes are not used
	TuneIdle       TuneMode = device.TuneIdle       // kernels that run often, only while the device is idle
)

// Denormals says how arithmetic treats denormal numbers of float32, float64 and bfloat16: see
// docs/numerics.md. GPUs do not follow it: each treats denormals its own way.
type Denormals = ir.Denormals

// The ways to treat denormals.
const (
	KeepDenormals  Denormals = ir.KeepDenormals  // IEEE 754: the default
	FlushDenormals Denormals = ir.FlushDenormals // zeros with the same sign, as fast as other numbers
)

// SubgroupMode says whether a GPU's shaders use subgroups, which are invocations that run in
// step. Sums of rows may differ between the modes, within their tolerance.
type SubgroupMode = runtime.SubgroupMode

// The subgroup modes. WebGPU's shaders have none.
const (
	SubgroupsOn  SubgroupMode = runtime.SubgroupsOn  // if the adapter has them
	SubgroupsOff SubgroupMode = runtime.SubgroupsOff // never
)

// NarrowMode says whether elements of 8 and 16 bits take their own size in a GPU's memory, or four
// bytes each. The results are the same.
type NarrowMode = runtime.NarrowMode

// The narrow modes. Only Vulkan's shaders can access such elements.
const (
	NarrowOn  NarrowMode = runtime.NarrowOn  // if the adapter's shaders can access them
	NarrowOff NarrowMode = runtime.NarrowOff // never
)

// MatrixMode says whether a GPU's shaders multiply 16-bit floats by matrix units. Products may
// differ between the modes, within their tolerance.
type MatrixMode = runtime.MatrixMode

// The matrix modes. Only Vulkan's shaders have matrix units.
const (
	MatricesOn  MatrixMode = runtime.MatricesOn  // if the adapter has some
	MatricesOff MatrixMode = runtime.MatricesOff // never
)

// PrecisionMode says how a GPU multiplies float32 numbers in products of matrices, convolutions and
// attention. Matrix units multiply them as sums of bfloat16 parts: see docs/numerics.md for the
// errors. JAX has the same modes as BF16_BF16_F32_X6 and BF16_BF16_F32_X3.
type PrecisionMode = runtime.PrecisionMode

// The precision modes. Only Vulkan's shaders have matrix units. A device without those of bfloat16
// counts a fallback, tells Trace.Error, and multiplies in float32.
const (
	PrecisionFull   PrecisionMode = runtime.PrecisionFull   // float32
	PrecisionBF16x6 PrecisionMode = runtime.PrecisionBF16x6 // six products of three parts: as precise as float32
	PrecisionBF16x3 PrecisionMode = runtime.PrecisionBF16x3 // three products of two parts: errors up to 2^-14 of the sum of magnitudes
)

// FusionMode says how recorded ops become kernels.
type FusionMode = device.FusionMode

// The fusion modes.
const (
	FusionOn     FusionMode = device.FusionOn     // search for the best plan
	FusionGreedy FusionMode = device.FusionGreedy // only the cheap rule
	FusionOff    FusionMode = device.FusionOff    // one kernel for each op
)

// ParseOptions reads the text that [Options.String] prints, such as "cpu:threads=2,compile=wait".
// A key alone, as in "cpu:check", means true. The error lists every problem, and for an unknown
// key the known keys.
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
			dir = plancache.Off // an account without a home directory, such as a service's
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

// overlay returns base with the fields that top sets.
func overlay(base, top Options) Options {
	b, t := reflect.ValueOf(&base).Elem(), reflect.ValueOf(top)
	for i := range t.NumField() {
		if f := t.Field(i); !f.IsZero() {
			b.Field(i).Set(f)
		}
	}
	return base
}

// Stats are a device's counters since it was opened.
//
// Ops and plans:
//
//	Ops           ops recorded
//	Segments      segments run; PlanHits of them by a known plan
//	Explorations  plans made; Searches of them in the background
//	Plans         plans held now; Evictions were dropped
//	Layouts       times that a plan was laid out for sizes that it had not run with recently
//	Kernels       launches by plans
//	InPlace       outputs written over an operand
//	Recomputes    unwritten results that were computed again
//	Aliases       results that are views of existing memory
//	Fallbacks     plans and kernels replaced by a slower way after a fault; for Unbuilt of
//	              them the plan could not be built, and its segments run op by op
//	Collections   runs of Go's collector that were forced for memory
//	PinnedBytes   bytes kept alive now to recompute unwritten results
//	LiveBytes     bytes of tensors now
//
// Recordings, see [Recording] and [BoundRecording]:
//
//	Recordings    calls of a recorded function by Run
//	Trials        calls of it without values, to find out how it depends on sizes
//	Resizes       other sizes for which a recording was adapted
//	Replays       runs as one list of launches, in memory reserved for it
//	BoundRuns     runs of bound recordings; BoundCalls of them were one function
//
// Time:
//
//	Tunings       kernels whose choices were timed
//	TuneNanos     time that this took; TuneTaken of it from a program that did not pause,
//	              at most a twentieth of the program's time
//	KernelNanos   time of launches, if the device was opened with Report
//	PeakShare     the share of KernelNanos that these launches would take at the machine's
//	              peak of multiply-adds or of copies, whichever is nearer; 0 if unknown
//
// Cache has the counters of the cache on disk and of bundles (see [UsePlans]): Hits, Misses,
// Damaged (misses because a file was no valid entry), Refused (directories and contents not
// used), Written, Evicted, Failed file operations, ReadNanos, BytesRead, BytesWritten,
// WritesDisabled, Bundled (entries found in a bundle) and Foreign (entries that the device cannot
// use). Bundles count in Damaged and Refused too.
//
// Runtime has the driver's counters: Launches, BytesRead, BytesWritten, Compiles, CompileFails,
// Dropped (queued compiles of kernels that nothing uses any more), Fallbacks, Tier0 (interpreted
// launches), Tier0Points (elements of those), Hidden (scores of attention not computed,
// because a mask hides them), Grouped (launches that ran beside others of their list, each on one
// thread), Prepared (launches of lists that were prepared once, such as a [Recording]'s), Recorded
// and Replayed (of a GPU: recordings of such lists, and launches that ran as recorded), Unsteady
// (of a GPU: lists that were prepared in vain), Waits
// (of a GPU, to learn of indices out of range), Allocs, AllocBytes, PeakBytes since
// [Device.ResetPeak], PoolBytes, PoolHits, CompileNanos, NativeKernels (variants of kernels for
// which the process made machine code), NativeBytes (of that code now, for all devices) and
// NativeRefused (phases that the process cannot express in machine code: they are interpreted, or
// compiled from C).
type Stats = device.Stats
