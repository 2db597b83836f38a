package nap

import (
	"syscall"
	"time"
)

// prSetTimerSlack is PR_SET_TIMERSLACK of prctl(2).
const prSetTimerSlack = 29

// Precise makes the naps of this thread end when they should. By default the kernel may let each
// take 50 µs more. The goroutine must be locked to its thread.
func Precise() { syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0) }

// For sleeps for d, or less if a signal arrives.
func For(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(int64(d))
		syscall.Nanosleep(&t, nil)
	}
}
