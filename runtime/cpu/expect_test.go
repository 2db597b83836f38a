package cpu

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// arithmetic returns kernels that differ in one operation each.
func arithmetic(t *testing.T, ops ...string) (ks []*codegen.Kernel) {
	t.Helper()
	for _, op := range ops {
		k, err := codegen.Parse("in 0 : float32\nout 1 : float32\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = " + op + " %0 %1 : float32\nstore 1 %2\n")
		if err != nil {
			t.Fatal(err)
		}
		ks = append(ks, k)
	}
	return ks
}

// beforehand opens a device whose background worker stops at its first kernel until open is
// called.
func beforehand(t *testing.T, c runtime.Config) (d *device, first *codegen.Kernel, open func()) {
	t.Helper()
	d = openTest(t, c)
	first = arithmetic(t, "mul")[0]
	d.programs.mu.Lock()
	d.Expect([]runtime.Kernel{first})
	for d.life.TryLock() { // until the worker is in Build
		d.life.Unlock()
		time.Sleep(time.Millisecond)
	}
	return d, first, d.programs.mu.Unlock
}

// holds reports that a kernel was built.
func (d *device) holds(k *codegen.Kernel) bool {
	d.programs.mu.Lock()
	defer d.programs.mu.Unlock()
	return d.programs.find(k.Key(), k.String()) != nil
}

// TestExpect checks that kernels are built ahead of time, except dropped ones, and that Wait waits
// for it.
func TestExpect(t *testing.T) {
	d, first, open := beforehand(t, runtime.Config{Threads: 1})
	ks := arithmetic(t, "add", "sub", "div")
	drop := d.Expect([]runtime.Kernel{ks[0], ks[1]})
	d.Expect([]runtime.Kernel{ks[2]})
	drop()
	open()
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if !d.holds(first) || d.holds(ks[0]) || d.holds(ks[1]) || !d.holds(ks[2]) {
		t.Errorf("built: %v, dropped %v %v, %v", d.holds(first), d.holds(ks[0]), d.holds(ks[1]), d.holds(ks[2]))
	}
	if n := d.expected.count.Load(); n != 0 {
		t.Errorf("%d plans are still counted", n)
	}
}

// TestExpectIsBounded checks that plans beyond maxExpected are not queued, and are built when they
// run.
func TestExpectIsBounded(t *testing.T) {
	d, _, open := beforehand(t, runtime.Config{Threads: 1})
	last := arithmetic(t, "add")[0]
	for range maxExpected - 1 {
		d.Expect(nil)
	}
	d.Expect([]runtime.Kernel{last})
	if n := d.expected.count.Load(); n != maxExpected {
		t.Errorf("%d plans wait", n)
	}
	open()
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if d.holds(last) {
		t.Error("built for a plan that found no place")
	}
	d.Expect([]runtime.Kernel{last})
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if !d.holds(last) {
		t.Error("there is a place again")
	}
}

// TestCloseDropsWhatIsExpected checks that Close waits for the kernel that is being built and for
// no other.
func TestCloseDropsWhatIsExpected(t *testing.T) {
	d, first, open := beforehand(t, runtime.Config{Threads: 1})
	second := arithmetic(t, "add")[0]
	d.Expect([]runtime.Kernel{second})
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	for !d.expected.ended.Load() {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-closed:
		t.Error("Close did not wait for what is being built")
	default:
	}
	open()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if !d.holds(first) || d.holds(second) {
		t.Errorf("begun: built %v; queued: built %v", d.holds(first), d.holds(second))
	}
	d.Expect([]runtime.Kernel{second})()
}

// TestExpectSurvivesAPanic checks that a panic is counted and reported, and that the next kernel
// is built.
func TestExpectSurvivesAPanic(t *testing.T) {
	var told atomic.Pointer[error]
	d, err := open(runtime.Config{Threads: 1, OnError: func(err error) { told.Store(&err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	k := arithmetic(t, "mul")[0]
	d.Expect([]runtime.Kernel{(*codegen.Kernel)(nil), k})
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if err := told.Load(); err == nil || !strings.Contains((*err).Error(), "beforehand: panic") || d.Stats().Fallbacks != 1 {
		t.Errorf("told of %v, %d fallbacks", err, d.Stats().Fallbacks)
	}
	if !d.holds(k) {
		t.Error("the other kernel was not built")
	}
}
