//go:build cgo && linux

package cpu

import (
	"math/rand/v2"
	"os"
	"os/exec"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// addOn adds vectors of n elements on a device.
func addOn(t *testing.T, d *device, n int64) {
	t.Helper()
	k := kerneltest.EveryOp(ir.Float32, func(op ir.Op, _ ir.DType) bool { return op == ir.Add })
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(1, 1)), k, []int64{n}, 1, kerneltest.Dense)
	compare(t, "add", k, onDevice(t, d, k, h), reference(t, k, h))
}

func threadsOf(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// inChild runs a test again in a process of its own, where nothing else starts
// threads or takes memory. It reports whether this is that process.
func inChild(t *testing.T) bool {
	t.Helper()
	const variable = "POOL_TEST_CHILD"
	if os.Getenv(variable) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// TestThreadsStartLate holds that threads are started for work that is worth
// several, and not before.
func TestThreadsStartLate(t *testing.T) {
	if !inChild(t) {
		return
	}
	const threads = 20 // more than Go starts meanwhile
	d := openTest(t, runtime.Config{Threads: threads, Tier: -1})
	addOn(t, d, 100)
	before := threadsOf(t)
	if before >= threads {
		t.Errorf("%d threads after a launch of 100 elements", before)
	}
	addOn(t, d, 1<<20)
	if n := threadsOf(t); n < before+threads-1 {
		t.Errorf("%d threads, %d before a launch of a million elements", n, before)
	}
}

// TestThreadsRefused: a system that starts no more threads makes launches slower
// and nothing else, and that is counted and told.
func TestThreadsRefused(t *testing.T) {
	if !inChild(t) {
		return
	}
	var told []error
	d, err := open(runtime.Config{Threads: 4, Tier: -1, OnError: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := make([]byte, 8<<20)
	b, err := d.Alloc(int64(len(x)))
	if err != nil {
		t.Fatal(err)
	}
	room := int64(4 << 20)
	if size := stackSize(t); size <= uint64(room) {
		t.Skipf("stacks of threads take %d bytes here, too few to refuse", size)
	}
	debug.SetGCPercent(-1) // whose threads would be refused, too
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: uint64(addressSpace(t) + room), Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Write(b, ir.Uint8, 0, x); err != nil { // worth several threads, and takes no memory
			t.Error(err)
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &was); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "refuses 3 of 4 threads") || d.Stats().Fallbacks != 1 {
		t.Errorf("told %v, %d fallbacks", told, d.Stats().Fallbacks)
	}
}

// stackSize is what the stack of a thread takes.
func stackSize(t *testing.T) uint64 {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_STACK, &l); err != nil {
		t.Fatal(err)
	}
	if l.Cur > 1<<40 {
		return 2 << 20 // of threads where there is no limit
	}
	return l.Cur
}

// addressSpace is what this process has taken of it.
func addressSpace(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * int64(os.Getpagesize())
}

// TestThreadsSleepElsewhere: a thread that sleeps will wake on another processor
// than the one that has work for it, and one that is roused looks for work and
// sleeps again.
func TestThreadsSleepElsewhere(t *testing.T) {
	if !inChild(t) {
		return
	}
	places := func() (kept, all int) { // threads that are kept off a processor
		most := ""
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		masks := map[string]int{}
		for _, task := range list {
			text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
			if err != nil {
				continue // a thread that ended
			}
			_, mask, _ := strings.Cut(string(text), "Cpus_allowed:\t")
			mask, _, _ = strings.Cut(mask, "\n")
			if masks[mask]++; masks[mask] > masks[most] {
				most = mask
			}
			all++
		}
		return all - masks[most], all
	}
	const threads = 3
	d := openTest(t, runtime.Config{Threads: threads, Tier: -1})
	exec := d.wide.all[0].exec.(*cExecutor)
	asleep := func() int { return int(atomic.LoadInt32(exec.asleep)) }
	sleep := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); asleep() != threads-1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d threads sleep, not %d", asleep(), threads-1)
			}
		}
	}
	for range 3 {
		addOn(t, d, 1<<20)
		sleep()
		if kept, all := places(); goruntime.NumCPU() > 1 && kept != threads-1 {
			t.Errorf("%d of %d threads are kept off a processor, not %d", kept, all, threads-1)
		}
		roused := false
		for range 100 { // they sleep again after some microseconds
			d.wide.rouse()
			roused = roused || asleep() < threads-1
			sleep()
		}
		if !roused {
			t.Error("nobody was roused")
		}
	}
}
