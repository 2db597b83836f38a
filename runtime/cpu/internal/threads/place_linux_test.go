package threads

import (
	goruntime "runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/procs"
)

// whereabouts returns the processors that the calling thread may run on.
func whereabouts() (set processors) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	return set
}

// looking records where a pool's second thread may run during its shares.
type looking struct {
	mu   sync.Mutex
	seen []processors
}

func (l *looking) Share(who int, _, _ int64) {
	busy(300 * time.Microsecond)
	if who == 1 {
		l.mu.Lock()
		l.seen = append(l.seen, whereabouts())
		l.mu.Unlock()
	}
}

// TestPoolKeepsOff checks that a thread that slept does its first share on another processor than
// the owner of the job, and the later ones wherever the owner may run. In the first round the thread
// may or may not sleep before the job opens, so its first share is not checked.
func TestPoolKeepsOff(t *testing.T) {
	if goruntime.NumCPU() < 2 || here() == 0 {
		t.Skip("there is nowhere else to be, or no saying where")
	}
	goruntime.LockOSThread() // this thread is the owner
	defer goruntime.UnlockOSThread()
	procs.Use(t, 2)
	home := whereabouts()
	p := NewPool(2)
	defer p.Close()
	for round := range 5 {
		l := &looking{}
		p.Split(2, 8, 1, l)
		for i, at := range l.seen {
			if first := i == 0; (at != home) != first && !(first && round == 0) {
				t.Errorf("round %d, share %d: the thread may run on %x, its owner on %x", round, i, at[0], home[0])
			}
		}
		if round > 0 && len(l.seen) < 2 {
			t.Logf("round %d: %d shares on the second thread", round, len(l.seen))
		}
		for end := time.Now().Add(time.Minute); p.sleeping.Load() != 1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the thread does not sleep")
			}
		}
		if w := &p.workers[0]; w.off != p.at.Load() {
			t.Errorf("round %d: the thread keeps off %d, its owner was on %d", round, w.off-1, p.at.Load()-1)
		}
	}
	if at := whereabouts(); at != home {
		t.Errorf("the owner may run on %x, not on %x", at[0], home[0])
	}
}
