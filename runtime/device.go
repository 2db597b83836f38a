package runtime

import (
	"iter"

	"github.com/millrace-go/millrace/ir"
)

// Kernel is the input of Device.Build: in practice a *codegen.Kernel. Package codegen ranks above
// this package; drivers import it.
type Kernel interface {
	Key() uint64    // hash of the canonical text
	String() string // canonical text
}

// Buffer is device memory, opaque outside its driver.
type Buffer interface {
	Bytes() int64 // usable size
}

// Program is a kernel that a driver has prepared; it is opaque outside the driver. One Program
// serves every launch of its kernel. A driver keeps variants for access classes inside it and may
// replace their code by better code between launches.
type Program interface {
	Kernel() Kernel
}

// MaxRank is the most dims of a launch. It is above ir.MaxRank because reshapes split dims.
const MaxRank = 16

// Access gives the address of an operand's element for a point of the domain: Offset +
// sum(Stride[d]*i[d]), in elements, mapped through every Stage in order.
type Access struct {
	Buf    Buffer // nil for index operands
	Offset int64
	Stride [MaxRank]int64
	Stages []Stage // only for views that strides cannot describe
	// IndexStride and IndexSize serve ir.LoadAt, which reads IndexStride*i elements further, for
	// an index i in [0, IndexSize).
	IndexStride, IndexSize int64
	// Local is, inside a chain, the number of a local memory, counted from 1. Buf is nil then.
	Local int
	// Piece is set (not 0) for an output whose buffer is also written by other launches of the
	// list. Launches with the same Piece write different elements of it.
	Piece int32
}

// Stage maps a linear position to another: it splits the position row-major over Dims and computes
// a new position with Stride and Offset.
type Stage struct {
	Offset int64
	Dims   []int64
	Stride []int64
}

// Position maps position p through the stage.
func (s *Stage) Position(p int64) int64 {
	q := s.Offset
	for d := len(s.Dims) - 1; d >= 0; d-- {
		q += p % s.Dims[d] * s.Stride[d]
		p /= s.Dims[d]
	}
	return q
}

// Launch is one run of a program. Dims are listed outermost first; the first Kept of them are
// kept, the others are reduced (Kept == Rank if none is). A program with row ops, other than a
// contraction, has at least one reduced dim: it has size 1 where each row is a single point. Dims
// are already collapsed (see Collapse).
type Launch struct {
	Prog    Program
	Rank    int
	Kept    int
	Dims    [MaxRank]int64
	Args    []Access // one per kernel operand
	Chain   *Chain   // set in the first launch of a chain only
	Scalars []uint64 // bits in the kernel's scalar dtypes
	// Provisional marks launches of a plan that a search may replace. A compiler run for their
	// kernels must pay off within these launches alone.
	Provisional bool
	// Copies marks a launch that only copies: it is never worth compiling.
	Copies bool
	// Choice selects one of the ways to run the launch that a Tuner listed; 0 is the device's
	// default.
	Choice uint64
}

// Caps describes a device to the engine. It is data, without behaviour.
type Caps struct {
	Name        string // "cpu", "webgpu"
	Description string // adapter or ISA, for people
	Fingerprint string // true ISA or adapter features; part of cache keys
	DTypes      ir.DTypeSet
	// ElemSize is the number of bytes of one element in device buffers.
	ElemSize [ir.NumDTypes]int
	// Exact devices compute the same bits as the oracle; others stay within ir's tolerances.
	Exact bool
	// Denormals is the denormal mode of kernels built for this device.
	Denormals ir.Denormals

	// SlowBuild devices cannot run a kernel while it is being compiled. A plan that will be
	// replaced is not worth building on them.
	SlowBuild bool

	// Totals reports that row kernels may also fold all their points (a fold over everything).
	Totals bool

	// Limits of a kernel, 0 for none. A plan respects all of them, except in a kernel of a single
	// op.
	MaxOperands int // operands in memory
	MaxSlots    int // all operands: those in memory and index operands
	MaxScalars  int // run-time scalars
	MaxBody     int // instructions of a lowered body, by register pressure
	MaxRowOps   int // row ops of one phase, totals included: see codegen.Size
	MaxBindings int // operands in memory and results of row ops together, in kernels that have row ops

	MaxBuffer int64 // bytes of one buffer

	Bandwidth  float64 // bytes per second of a large copy, both directions counted
	LaunchCost float64 // seconds per launch
	OpCost     float64 // seconds per element for one cheap op, all threads
	// StretchCost is the cost, in seconds per operand with all threads, of starting another
	// stretch of points along the innermost dim in a row kernel. It is 0 if each point computes
	// its own addresses.
	StretchCost float64
}

// Stats are a device's counters since it was opened.
type Stats struct {
	Launches     int64
	BytesRead    int64 // by kernels, from operand sizes
	BytesWritten int64
	Compiles     int64 // finished compiler runs or pipeline builds, including those made ahead of time
	CompileFails int64
	Dropped      int64 // queued compiles that were dropped because nothing uses their kernel any more
	Fallbacks    int64 // launches that could not use their intended variant
	Tier0        int64 // launches run by the interpreter
	Tier0Points  int64 // points of those launches, without copies
	Hidden       int64 // results of contractions that were skipped because a mask hides them
	Grouped      int64 // launches that ran at the same time as others of their list, each on one thread
	Prepared     int64 // launches of prepared lists, see Preparer
	Recorded     int64 // how often a GPU's driver recorded a prepared list, for other buffers again
	Replayed     int64 // launches of prepared lists that ran as recorded
	Unsteady     int64 // lists that a GPU's driver prepared in vain: they came too seldom, or with buffers that did not fit
	Waits        int64 // number of times a Run waited for the device to learn of an index out of range
	Allocs       int64
	AllocBytes   int64 // bytes allocated and not freed
	PeakBytes    int64 // maximum of AllocBytes since ResetPeak
	PoolBytes    int64 // bytes kept for reuse
	PoolHits     int64
	CompileNanos int64

	NativeKernels int64 // kernel variants for which this process made machine code
	NativeBytes   int64 // bytes of machine code mapped now, by all devices of the process
	NativeRefused int64 // phases that machine code cannot express: they stay interpreted, or are compiled from C
}

// Device runs programs. All methods are safe for concurrent use. Launches of one Run are ordered,
// and a Run sees the effects of every Run that returned before it was called. Runs called at the
// same time share no memory that one of them writes: a device may execute them at the same time,
// and a short one should not wait for a long one.
type Device interface {
	Caps() *Caps
	// Alloc returns memory with undefined contents, or ErrOutOfMemory.
	Alloc(bytes int64) (Buffer, error)
	// Free returns memory to the device's pool. Work that a finished Run submitted may still use
	// the memory; a Run in progress or a later Run may not.
	Free(Buffer)
	// Write copies the bytes of src into a buffer at element off, converting to the device's
	// element size; Read copies elements back. Both wait for earlier work.
	Write(dst Buffer, dt ir.DType, off int64, src []byte) error
	Read(dst []byte, dt ir.DType, src Buffer, off int64) error
	// Build prepares a kernel. It must be quick: slow compiles continue in the background unless
	// the device was opened to wait for them.
	Build(Kernel) (Program, error)
	// Run executes launches in order: one call per plan. When it returns, the host may reuse its
	// arguments; results are visible to later calls.
	Run([]Launch) error
	// Wait blocks until submitted work is done and, if background is true, until background work
	// is idle too.
	Wait(background bool) error
	Stats() Stats
	// ResetPeak restarts PeakBytes from the current AllocBytes.
	ResetPeak()
	Close() error
}

// Forgetter is a device that can be told that no known plan uses a program any more: its
// background work for the program is useless. A Run that has begun may still launch the program,
// and it may be built again.
type Forgetter interface{ Forget(Program) }

// KindShader is the kind of the cache or bundle entries with the text of a shader that ran. Their
// key begins with Scope, which names the language.
const KindShader = "shader"

// Note is an entry of a cache or a bundle.
type Note struct{ Kind, Key, Value string }

// Noter is a device that records what it ran, as a start for other processes. It records no
// shaders of plans that will be replaced.
type Noter interface{ Notes() []Note }

// Scope is the first line of the keys of entries that are valid for this exact device only.
func (c *Caps) Scope() string { return "device=" + c.Name + " fingerprint " + c.Fingerprint }

// Prebuilder is a device that compiles, in the background, shaders that ran elsewhere. entries
// yields the bundle's entries of KindShader for this device; a key is the part after the scope.
// Another goroutine reads the sequence. refuse is called for each entry that cannot be used.
type Prebuilder interface {
	Prebuild(entries iter.Seq2[string, []byte], refuse func(error))
}

// Expecter is a device that can be told of kernels that will probably be built soon, to start
// early. Expect does not wait; Build, not Expect, reports errors of a kernel. The caller calls
// drop if the kernels will not be built: it removes those that have not started.
type Expecter interface{ Expect([]Kernel) (drop func()) }

// Variant is code that a device made for a program, for people to read. A device that can show its
// code has a method Source(Program) []Variant.
type Variant struct {
	Tier   string // for example "tier 0", "tier 1 avx2", "wgsl", "glsl"
	Class  string // access classes that the code is for
	Source string
}
