package threads

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// parker puts a thread to sleep on a futex. Waking a goroutine by a channel takes ten times as
// long, because a processor must first find it.
type parker struct {
	state uint32
}

const (
	awake   = iota
	asleep  // or about to sleep
	claimed // a thread is waking it

	futexWait = 0 | 128 // private to this process
	futexWake = 1 | 128
)

// prepare marks the thread as about to sleep.
func (p *parker) prepare() { atomic.StoreUint32(&p.state, asleep) }

// cancel withdraws prepare; it returns false if another thread is already waking this one.
func (p *parker) cancel() bool { return atomic.CompareAndSwapUint32(&p.state, asleep, awake) }

// claim reports that the caller, and no other thread, must wake the thread.
func (p *parker) claim() bool {
	return atomic.LoadUint32(&p.state) == asleep && atomic.CompareAndSwapUint32(&p.state, asleep, claimed)
}

// park sleeps until the thread is woken. Go uses the processor for other goroutines meanwhile.
func (p *parker) park() {
	for {
		now := atomic.LoadUint32(&p.state)
		if now == awake {
			return
		}
		_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&p.state)), futexWait, uintptr(now), 0, 0, 0)
	}
}

// wake wakes the thread. The caller has claimed it.
func (p *parker) wake() {
	atomic.StoreUint32(&p.state, awake)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&p.state)), futexWake, 1, 0, 0, 0)
}
