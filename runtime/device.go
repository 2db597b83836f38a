package runtime

import (
	"iter"

	"github.com/millrace-go/millrace/ir"
)

// Kernel is what a driver builds programs from: in practice *codegen.Kernel,
// which ranks above this package and which drivers import.
type Kernel interface {
	Key() uint64    // hash of the canonical text
	String() string // canonical text
}

// Buffer is device memory, opaque outside its driver.
type Buffer interface {
	Bytes() int64 // usable size
}

// Program is a kernel made ready by a driver: opaque outside it. One Program
// serves every launch of its kernel; a driver keeps variants for access
// classes inside and may replace their code by better code between launches.
type Program interface {
	Kernel() Kernel
}

// MaxRank bounds the dims of a launch: reshapes split dims, so it is above
// ir.MaxRank.
const MaxRank = 16

// Access says where an operand's element for a point of the domain is:
// address = Offset + sum(Stride[d]*i[d]), in elements, then through every
// Stage in order.
type Access struct {
	Buf    Buffer // nil for index operands
	Offset int64
	Stride [MaxRank]int64
	Stages []Stage // only for views that no stride describes
	// An ir.LoadAt reads IndexStride*i further on, for an index i in [0, IndexSize).
	IndexStride, IndexSize int64
	// Local is, inside a chain, the number of a local memory, counted from 1:
	// Buf is nil then.
	Local int
	// Piece is not 0 of an output whose buffer other launches of the list write, too:
	// those with the same number write other elements of it.
	Piece int32
}

// Stage maps a linear position to another: it is taken apart row-major over
// Dims and put together again with Stride and Offset.
type Stage struct {
	Offset int64
	Dims   []int64
	Stride []int64
}

// Position is where the stage takes position p.
func (s *Stage) Position(p int64) int64 {
	q := s.Offset
	for d := len(s.Dims) - 1; d >= 0; d-- {
		q += p % s.Dims[d] * s.Stride[d]
		p /= s.Dims[d]
	}
	return q
}

// Launch is one run of a program. Dims are listed outermost first; the first
// Kept of them are kept, the rest reduced (Kept == Rank where nothing is).
// A program with row ops, other than a contraction, has a reduced dim at least:
// where rows are single points it is of size 1.
// Dims are already collapsed (see Collapse).
type Launch struct {
	Prog    Program
	Rank    int
	Kept    int
	Dims    [MaxRank]int64
	Args    []Access // one per kernel operand
	Chain   *Chain   // of the first launch of a chain
	Scalars []uint64 // bits in the kernel's scalar dtypes
	// Provisional launches are of a plan for which a better one is searched:
	// their kernels are worth a compiler only for what they do themselves.
	Provisional bool
	// Copies is a launch that computes nothing: no compiler is worth its time.
	Copies bool
	// Choice is the way to run it, one that a Tuner listed; 0: the device's own.
	Choice uint64
}

// Caps is what the engine must know of a device. It is data: no behaviour.
type Caps struct {
	Name        string // "cpu", "webgpu"
	Description string // adapter or ISA, for people
	Fingerprint string // true ISA or adapter features; part of cache keys
	DTypes      ir.DTypeSet
	// ElemSize is the bytes one element takes in device buffers.
	ElemSize [ir.NumDTypes]int
	// Exact devices compute the oracle's bits; others stay within ir tolerances.
	Exact bool
	// Denormals is what kernels for this device are to say of them.
	Denormals ir.Denormals

	// SlowBuild devices have nothing to run a kernel by while it is compiled: a
	// plan that will be replaced is not worth building.
	SlowBuild bool

	// Totals: kernels of rows may fold all their points as well.
	Totals bool

	// Limits of a kernel, 0 for none. A plan keeps all of them, except in a kernel of a single op.
	MaxOperands int // operands in memory
	MaxSlots    int // operands in all: those in memory, and index operands
	MaxScalars  int // run-time scalars
	MaxBody     int // instructions of a lowered body, by register pressure
	MaxRowOps   int // row ops of one phase, totals included: see codegen.Size
	MaxBindings int // operands in memory and results of row ops together, in kernels that have row ops

	MaxBuffer int64 // bytes of one buffer

	Bandwidth  float64 // bytes per second of a large copy, both directions counted
	LaunchCost float64 // seconds per launch
	OpCost     float64 // seconds per element for one cheap op, all threads
	// StretchCost is the seconds, per operand and all threads, by which a kernel of
	// rows begins another stretch of points along its innermost dim; 0 where each
	// point finds its own elements.
	StretchCost float64
}

// Stats are a device's counters since it was opened.
type Stats struct {
	Launches     int64
	BytesRead    int64 // by kernels, from operand sizes
	BytesWritten int64
	Compiles     int64 // finished compiler runs or pipeline builds, those made beforehand included
	CompileFails int64
	Dropped      int64 // queued compiles that were given up: nothing uses their kernel any more
	Fallbacks    int64 // launches that could not use the variant they should
	Tier0        int64 // launches run by the interpreter
	Tier0Points  int64 // their points, copies left out
	Shipped      int64 // launches of kernels that were compiled into the program
	Hidden       int64 // results of contractions that were left out, since a mask hides them
	Grouped      int64 // launches that ran beside others of their list, each on one thread
	Prepared     int64 // launches of lists that were made ready once, see Preparer
	Waits        int64 // times that a Run waited for the device, to learn of an index out of range
	Allocs       int64
	AllocBytes   int64 // live bytes handed out
	PeakBytes    int64 // most AllocBytes since ResetPeak
	PoolBytes    int64 // bytes kept for reuse
	PoolHits     int64
	CompileNanos int64

	NativeKernels int64 // variants of kernels that machine code was made of in the process
	NativeBytes   int64 // bytes of machine code mapped now, by all devices of the process
	NativeRefused int64 // phases that have no form in machine code: they stay interpreted, or go to C
}

// Device runs programs. All methods are safe for concurrent use; launches of
// one Run are ordered, and a Run that was called after another returned sees
// its effects. Runs that are called at a time share nothing that one of them
// writes: a device may do them at once, and should not let a short one wait for
// a long one.
type Device interface {
	Caps() *Caps
	// Alloc returns memory with undefined contents, ErrOutOfMemory when there is none.
	Alloc(bytes int64) (Buffer, error)
	// Free gives memory back to the device's pool. What a Run that has returned
	// submitted may still use it; no Run under way, and none that comes, may.
	Free(Buffer)
	// Write copies n elements of Go memory into a buffer, converting to the
	// device's element size; Read copies them back. Both wait for earlier work.
	Write(dst Buffer, dt ir.DType, off int64, src []byte) error
	Read(dst []byte, dt ir.DType, src Buffer, off int64) error
	// Build prepares a kernel. It must be quick: slow compiles go on in the
	// background unless the device was opened to wait for them.
	Build(Kernel) (Program, error)
	// Run executes launches in order: one call per plan. It returns when the
	// host may reuse what it passed; results are visible to later calls.
	Run([]Launch) error
	// Wait blocks until submitted work is done and background work is idle
	// where background is true.
	Wait(background bool) error
	Stats() Stats
	// ResetPeak makes PeakBytes start again from what is live now.
	ResetPeak()
	Close() error
}

// Forgetter is a device that is told of programs which no known plan uses any
// more: what it still does for them in the background is in vain. They may be
// launched all the same, by runs that have begun, and built again.
type Forgetter interface{ Forget(Program) }

// Kinds of the entries, of a cache or a bundle, that are a device's own notes:
// see Noter.
const (
	KindKernel = "kernel" // a kernel that ran, and what must be known to compile it elsewhere
	KindShader = "shader" // the text of a shader that ran; its key begins with Scope, which names the language
)

// Note is an entry of a cache or a bundle.
type Note struct{ Kind, Key, Value string }

// Noter is a device that notes what it ran, for other processes to begin with.
// Kernels of plans that will be replaced are not noted.
type Noter interface{ Notes() []Note }

// Scope is the first line of the key of what is good for the very same device
// only.
func (c *Caps) Scope() string { return "device=" + c.Name + " fingerprint " + c.Fingerprint }

// Prebuilder is a device that compiles in the background what ran elsewhere: the
// entries of KindShader that a bundle has for it, by what their keys have behind
// the scope. The sequence is read from another goroutine. refuse is told of each
// entry that is of no use.
type Prebuilder interface {
	Prebuild(entries iter.Seq2[string, []byte], refuse func(error))
}

// Expecter is a device that is told of kernels which will probably be built in a
// moment, so that it can begin. It does not wait, and what is wrong with a kernel
// is for Build to say. What Expect returns is called when they will not be built
// after all, and drops those that were not begun.
type Expecter interface{ Expect([]Kernel) (drop func()) }

// Variant is code that a device has made for a program, for people to read. A
// device that can show it has a method Source(Program) []Variant.
type Variant struct {
	Tier   string // "tier 0", "tier 1 avx2", "wgsl", "glsl"
	Class  string // access classes it is for
	Source string
}
