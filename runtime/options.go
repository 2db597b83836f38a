package runtime

import "github.com/millrace-go/millrace/ir"

// CompileMode selects how code for the CPU's tier 1 is made: as machine code by this process
// (native), or by C compilers in the background. A kernel without code, or without code yet, is
// interpreted.
type CompileMode uint8

const (
	CompileBackground CompileMode = iota // the default: native if this processor is supported, else C
	CompileWait                          // as CompileBackground, but the first run waits for its compiles
	CompileOff                           // no compiling: the interpreter runs everything
	CompileNative                        // native only: no compiler process is ever started
	CompileC                             // C only: no memory that this process has written is ever made executable
)

// Native reports that this process may make machine code.
func (m CompileMode) Native() bool { return m != CompileOff && m != CompileC }

// C reports that C compilers may be started.
func (m CompileMode) C() bool { return m != CompileOff && m != CompileNative }

// SubgroupMode selects whether a GPU's shaders combine the values of a row by subgroups: groups of
// invocations that run in step.
type SubgroupMode uint8

const (
	SubgroupsOn  SubgroupMode = iota // if the adapter supports them
	SubgroupsOff                     // never
)

// NarrowMode selects whether elements of 8 and 16 bits take their own size in a GPU's memory.
type NarrowMode uint8

const (
	NarrowOn  NarrowMode = iota // if the adapter's shaders can access them
	NarrowOff                   // never: each takes four bytes
)

// MatrixMode selects whether a GPU's shaders multiply by matrix units.
type MatrixMode uint8

const (
	MatricesOn  MatrixMode = iota // if the adapter has some that this engine trusts
	MatricesOff                   // never
)

// PrecisionMode selects how a GPU multiplies float32 numbers.
type PrecisionMode uint8

const (
	PrecisionFull   PrecisionMode = iota // as float32
	PrecisionBF16x6                      // three bfloat16 parts of each, and six of their products
	PrecisionBF16x3                      // two parts, three products
)

// Cache stores bytes by kind and key: see package plancache. Get returns only data that this user
// put there. Methods are safe for concurrent use.
type Cache interface {
	Get(kind, key string) ([]byte, bool)
	Put(kind, key string, value []byte) error
	// Refuse records that an entry of the cache could not be used.
	Refuse(kind string, why error)
}

// Config holds the options of Driver.Open. The zero value works.
type Config struct {
	Threads     int           // worker threads of the CPU device; 0: GOMAXPROCS at Open
	Compile     CompileMode   // see CompileMode
	Tier        int           // -1: interpreter only; 0: automatic; 1: compiled code, runs wait for it
	Adapter     string        // part of an adapter's name, to choose among several
	Isolate     bool          // runs the driver in its own process: see Isolator
	Subgroups   SubgroupMode  // of GPUs
	Narrow      NarrowMode    // of GPUs
	Matrices    MatrixMode    // of GPUs
	Precision   PrecisionMode // of GPUs
	MemoryLimit int64         // bytes of device memory; 0: no limit
	Denormals   ir.Denormals  // how arithmetic treats denormals; GPUs may differ
	// Cache, if set, keeps compiled results from one process to the next.
	Cache Cache
	// OnCompile and OnError, if set, are called after each compile and after each fault that the
	// device survived. They may be called from any goroutine.
	OnCompile func(k Kernel, seconds float64, err error)
	OnError   func(err error)
}
