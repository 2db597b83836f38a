package runtime

import "github.com/millrace-go/millrace/ir"

// CompileMode says who makes code of kernels for the CPU's tier 1: this process
// (native), or C compilers in the background. What there is no code of, or none yet,
// runs interpreted.
type CompileMode uint8

const (
	CompileBackground CompileMode = iota // the default: native where there is a target, else C; C where the program brings kernels in C
	CompileWait                          // the same, and the first run waits for whatever compiles
	CompileOff                           // nobody
	CompileNative                        // native only: no compiler is ever started
	CompileC                             // C only: no memory that was written is ever made executable
)

// Native reports that machine code may be made in the process.
func (m CompileMode) Native() bool { return m != CompileOff && m != CompileC }

// C reports that C compilers may be started.
func (m CompileMode) C() bool { return m != CompileOff && m != CompileNative }

// SubgroupMode says whether a GPU's shaders bring rows together by subgroups, those
// invocations that run in step.
type SubgroupMode uint8

const (
	SubgroupsOn  SubgroupMode = iota // where the adapter has them
	SubgroupsOff                     // never
)

// Cache keeps bytes by kind and key: see package plancache. What it gives is
// what was put there, by this user. Methods are safe for concurrent use.
type Cache interface {
	Get(kind, key string) ([]byte, bool)
	Put(kind, key string, value []byte) error
	// Refuse notes that an entry was of no use after all.
	Refuse(kind string, why error)
}

// Config is what a driver is opened with. The zero value works.
type Config struct {
	Threads     int          // worker threads of the CPU device; 0: GOMAXPROCS at Open
	Compile     CompileMode  // see CompileMode
	Tier        int          // -1: interpreter only; 0: automatic; 1: compiled code, waiting for it
	Adapter     string       // part of an adapter's name, where there are several
	Isolate     bool         // has the driver in a process of its own: see Isolator
	Subgroups   SubgroupMode // of GPUs
	MemoryLimit int64        // bytes of device memory; 0: no limit
	Denormals   ir.Denormals // what arithmetic makes of them; GPUs do as they like
	// Cache, where set, keeps what drivers make from one process to the next.
	Cache Cache
	// OnCompile and OnError, where set, are told of compiles and of faults that
	// were survived. They may be called from any goroutine.
	OnCompile func(k Kernel, seconds float64, err error)
	OnError   func(err error)
}
