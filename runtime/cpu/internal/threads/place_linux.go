package threads

import (
	goruntime "runtime"
	"sync"
	"syscall"
	"unsafe"
)

// Linux tends to wake a thread on the processor of its waker, which it expects to sleep soon. The
// owner of a job does not sleep: it continues to work, and with two processors both threads may
// share one for the whole job. Therefore a thread excludes the owner's processor before it sleeps,
// until it has done a share. Setting the affinity takes longer than waking, and before a sleep
// nothing waits for it. It is set at waking only if the owner has moved meanwhile. Each pool
// thread has a system thread for itself, which ends with it.

// processors is a set of processors.
type processors [16]uint64

// places holds where the owner of jobs may run, and so where the other threads may.
type places struct {
	mu   sync.Mutex
	home processors
	size uintptr // bytes of the set that the system uses
}

// place is where a thread may run.
type place struct {
	thread int
	off    int32 // the excluded processor plus one; 0: none. Accessed by the thread while awake, then by the thread that claimed it
}

// sysGetCPU is the system call number that package syscall lacks on some architectures; 0 if
// unknown.
var sysGetCPU = map[string]uintptr{"amd64": 309, "arm64": 168}[goruntime.GOARCH]

// here returns the caller's processor plus one; 0 if unknown.
func here() int32 {
	var at uint32
	if sysGetCPU == 0 {
		return 0
	}
	if _, _, e := syscall.RawSyscall(sysGetCPU, uintptr(unsafe.Pointer(&at)), 0, 0); e != 0 || at >= 8*uint32(unsafe.Sizeof(processors{})) {
		return 0
	}
	return int32(at) + 1
}

// find reads where the caller, the owner of jobs, may run, and reports whether that has changed.
func (p *places) find() bool {
	var home processors
	size, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(home), uintptr(unsafe.Pointer(&home)))
	if e != 0 {
		size = 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := home != p.home
	p.home, p.size = home, size
	return changed
}

func (p *places) now() (home processors, size uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.home, p.size
}

// settle gives the calling goroutine a thread of its own.
func (w *place) settle() {
	goruntime.LockOSThread()
	w.thread = syscall.Gettid()
}

// keepOff excludes a processor for a thread, unless it is excluded already or is the only one.
func (w *place) keepOff(p *places, at int32, anew bool) {
	if w.off == at && !anew {
		return
	}
	others, size := p.now()
	if at > 0 {
		others[(at-1)/64] &^= 1 << ((at - 1) % 64)
	}
	if at > 0 && others != (processors{}) && w.set(&others, size) {
		w.off = at
	}
}

// comeBack lets a thread run wherever the owner may.
func (w *place) comeBack(p *places) {
	if w.off == 0 {
		return
	}
	home, size := p.now()
	w.set(&home, size)
	w.off = 0
}

func (w *place) set(to *processors, size uintptr) bool {
	if size == 0 { // more processors than a set has room for
		return false
	}
	_, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(w.thread), size, uintptr(unsafe.Pointer(to)))
	return e == 0
}
