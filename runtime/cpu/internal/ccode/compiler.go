package ccode

import (
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/runtime"
)

// Kernel is a kernel in one layout of its operands. Its methods do not call the Compiler.
type Kernel interface {
	// Units returns the functions to compile, one for each phase.
	Units() ([]cgo.Unit, error)
	// Heat orders the queue: the hottest kernel is compiled first.
	Heat() int64
	// Finish receives the outcome, before the launches that wait for the job go on.
	Finish(Result)
	// String returns the kernel's text, for errors.
	String() string
}

// Job compiles a kernel once. Jobs that were forgotten may be added again.
type Job struct {
	kernel  Kernel
	queued  atomic.Bool
	awaited int           // launches that wait for done; guarded by the compiler's mu
	done    chan struct{} // closed when the job has ended
}

// NewJob returns the job of a kernel. It is not queued yet.
func NewJob(k Kernel) *Job { return &Job{kernel: k, done: make(chan struct{})} }

// Result is the outcome of a job.
type Result struct {
	// Phases are the kernel's functions; nil if there is no code.
	Phases []*Phase
	// Err is a CompileError if the kernel does not compile. It is nil if it was not tried, because
	// the compiler has been stopped or does not work.
	Err      error
	Took     time.Duration // spent on compiling; 0 for an object from the cache
	Recalled bool          // the object is from the cache
	Fallback bool          // the system executes no files in memory, so a file in a directory was loaded
}

// Config configures a Compiler.
type Config struct {
	Cache runtime.Cache // of objects and compilers; may be nil
	// Waits reports that every launch waits for its code, so the compiler's search starts at once.
	Waits bool
	// OnCompile is called after each compile; it may be nil. Waiting launches have gone on then.
	OnCompile func(k Kernel, took time.Duration, err error)
	Limits    Limits
}

// Limits bound compilers and their objects.
type Limits struct {
	// Patience is the most time to wait for a compiler in total, from its start or from its last
	// success, until it makes code that loads. After that nothing is compiled any more. Otherwise a
	// compiler that hangs would delay each kernel.
	Patience time.Duration
	// Objects is the most loaded objects of a process, over all its devices. Each takes about five
	// mappings, of which Linux grants a process 65,530, and about 40 kB. If mappings run out, Go's
	// own runtime ends the process. Kernels beyond the bound get no code.
	Objects int64
}
