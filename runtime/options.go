package runtime

// CompileMode says when kernels are compiled for the CPU's tier 1.
type CompileMode uint8

const (
	CompileBackground CompileMode = iota // the default: run interpreted until ready
	CompileWait                          // the first run waits for the compiler
	CompileOff                           // no compiler is ever started
)

// Config is what a driver is opened with. The zero value works.
type Config struct {
	Threads     int         // worker threads of the CPU device; 0: GOMAXPROCS at Open
	Compile     CompileMode // see CompileMode
	Tier        int         // -1: interpreter only; 0: automatic; 1: compiled code, waiting for it
	Adapter     string      // part of an adapter's name, where there are several
	MemoryLimit int64       // bytes of device memory; 0: no limit
	// OnCompile and OnError, where set, are told of compiles and of faults that
	// were survived. They may be called from any goroutine.
	OnCompile func(k Kernel, seconds float64, err error)
	OnError   func(err error)
}
