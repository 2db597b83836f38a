package operands

import "unsafe"

// Host is the driver, as those who walk over a launch's points see it. Threads are numbered from 0.
type Host interface {
	// Reserve returns n bytes of a thread's memory, or of that of the launch as a whole (Shared); nil if
	// they are refused. Their contents last until the next call.
	Reserve(thread int, n int64) unsafe.Pointer
	// Open returns two evaluators of a thread, with separate Args. They work until Close.
	Open(thread int) (first, second Evaluator)
	Close(thread int)
}

// Evaluator evaluates the phases of a launch on one thread.
type Evaluator interface {
	// Args returns the input of evaluations. The caller writes and changes it.
	Args() *Args
	// Eval computes points [begin, end) of a phase.
	Eval(phase int, begin, end int64)
}

// Recorder records the work of a launch while it is walked, on one thread. A walker must report
// every write to memory.
type Recorder interface {
	// Region reports n bytes of memory that the launch got from its thread.
	Region(p unsafe.Pointer, n int64)
	// Do records Go work on pointers.
	Do(f func(p *Pointers), pointers ...Pointer)
	// Check records Go work that notes indices out of range.
	Check(f func(p *Pointers, fault *IndexFault), pointers ...Pointer)
	// Stop marks that the launch ends here if an index was out of range.
	Stop()
	// Lose gives the recording up: the work depends on values, or is no list of steps.
	Lose()
}

// Pointers are the pointers of a step of recorded work.
type Pointers = [4]unsafe.Pointer

// Pointer is a pointer into the thread's memory, or into an operand.
type Pointer struct {
	P       unsafe.Pointer
	Operand int // NoOperand: the thread's memory
}

// NoOperand is the operand of pointers into the thread's memory.
const NoOperand = -1

// Own returns a pointer into the thread's memory.
func Own(p unsafe.Pointer) Pointer { return Pointer{P: p, Operand: NoOperand} }

// Shared is the number of the thread whose memory is that of the launch as a whole.
const Shared = -1
