package cpu

import (
	goruntime "runtime"
	"sync"
	"syscall"
	"unsafe"
)

// Linux likes to wake a thread on the processor of the one that wakes it, which it
// expects to sleep soon. The owner of a job does not: it works on, and with two
// processors both threads may stay on one of them for the whole job. So threads keep
// off the owner's processor from before they sleep until they have done a share: saying
// so takes longer than waking, and nobody waits then. Only where the owner moved
// meanwhile it has to be said when they are woken. Each has a thread of the system for
// itself, which ends with it.

// processors is a set of them.
type processors [16]uint64

// places is where the owner of jobs may run, and so the others.
type places struct {
	mu   sync.Mutex
	home processors
	size uintptr // bytes that the system has of it
}

// place is where a thread may run.
type place struct {
	thread int
	off    int32 // the processor it keeps off, one more; 0: none. Its own while it is awake, then of who claimed to wake it
}

// sysGetCPU is a number that package syscall lacks in part; 0 where there is none here.
var sysGetCPU = map[string]uintptr{"amd64": 309, "arm64": 168}[goruntime.GOARCH]

// here is the processor that the caller is on, one more; 0 where it is not known.
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

// find looks where the caller, who owns jobs, may run, and reports whether that has
// changed.
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

// keepOff keeps a thread off a processor, unless it does already, or has no other one.
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
	if size == 0 { // there are more of them than a set has room for
		return false
	}
	_, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(w.thread), size, uintptr(unsafe.Pointer(to)))
	return e == 0
}
