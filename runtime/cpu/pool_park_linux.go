package cpu

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// parker puts a thread to sleep: on a futex, as a goroutine that another one makes
// ready waits for a processor to look for it, ten times as long.
type parker struct {
	state uint32
}

const (
	awake   = iota
	asleep  // or about to be
	claimed // somebody wakes it

	futexWait = 0 | 128 // of this process alone
	futexWake = 1 | 128
)

// prepare says that the thread is about to sleep.
func (p *parker) prepare() { atomic.StoreUint32(&p.state, asleep) }

// cancel takes that back; false where somebody wakes the thread already.
func (p *parker) cancel() bool { return atomic.CompareAndSwapUint32(&p.state, asleep, awake) }

// claim reports that the caller, and nobody else, is to wake the thread.
func (p *parker) claim() bool {
	return atomic.LoadUint32(&p.state) == asleep && atomic.CompareAndSwapUint32(&p.state, asleep, claimed)
}

// park sleeps until the thread is woken. Go has the processor for others meanwhile.
func (p *parker) park() {
	for {
		now := atomic.LoadUint32(&p.state)
		if now == awake {
			return
		}
		_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&p.state)), futexWait, uintptr(now), 0, 0, 0)
	}
}

// wake wakes the thread, for whoever claimed it.
func (p *parker) wake() {
	atomic.StoreUint32(&p.state, awake)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&p.state)), futexWake, 1, 0, 0, 0)
}
