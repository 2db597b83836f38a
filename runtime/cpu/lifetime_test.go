//go:build cgo && unix

package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
)

// kernelOf returns one of 10,000 different kernels, for n from 0 to 9,999.
func kernelOf(t testing.TB, n int) *codegen.Kernel {
	t.Helper()
	ops := [10]string{"neg", "abs", "sqrt", "floor", "exp", "sin", "tanh", "square", "ceil", "recip"}
	var b strings.Builder
	b.WriteString("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n")
	for i := range 4 {
		fmt.Fprintf(&b, "%%%d = %s %%%d : float32\n", i+1, ops[n%10], i)
		n /= 10
	}
	b.WriteString("store 1 %4\n")
	k, err := codegen.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// runNumbered runs kernelOf(n) and compares the result with the oracle's.
func runNumbered(t testing.TB, d *device, n int) {
	t.Helper()
	k := kernelOf(t, n)
	h := kernels.NewLaunch(rand.New(rand.NewPCG(uint64(n), 1)), k, []int64{100}, 1, kernels.Dense)
	compare(t, fmt.Sprint("kernel ", n), k, onDevice(t, d, k, h), reference(t, k, h))
}

// collected runs garbage collections until done is true: cleanups run a moment after them.
func collected(t testing.TB, what string, done func() bool) {
	t.Helper()
	for range 200 {
		goruntime.GC()
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%s is still there", what)
}

// TestProgramsGo checks that unreachable programs are freed.
func TestProgramsGo(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1})
	kept, err := d.Build(kernelOf(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300 {
		runNumbered(t, d, n)
	}
	collected(t, "a program", func() bool {
		d.programs.mu.Lock()
		defer d.programs.mu.Unlock()
		return len(d.programs.byKey) == 1
	})
	again, err := d.Build(kernelOf(t, 0))
	if err != nil || again != kept {
		t.Errorf("a kernel whose program somebody has is built again, %v", err)
	}
	goruntime.KeepAlive(kept)
	runNumbered(t, d, 0)
}

// TestObjectsGo checks that the compiled objects of unreachable programs are closed.
func TestObjectsGo(t *testing.T) {
	needCompiler(t)
	d := openTest(t, byC(runtime.Config{Threads: 1, Compile: runtime.CompileWait}))
	collected(t, "an object of an earlier test", func() bool { return ccode.Objects() == 0 })
	kept, err := d.Build(kernelOf(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 8 {
		runNumbered(t, d, n)
	}
	collected(t, "an object", func() bool { return ccode.Objects() == 1 })
	runNumbered(t, d, 0) // by its compiled code
	if s := d.Stats(); s.Compiles != 8 || s.Tier0 != 0 {
		t.Errorf("%d compiles for 8 kernels, %d launches interpreted", s.Compiles, s.Tier0)
	}
	goruntime.KeepAlive(kept)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if n := ccode.Objects(); n != 0 {
		t.Errorf("%d objects after the device was closed", n)
	}
}

// TestObjectsFull checks that garbage is collected if the most objects are loaded. If all objects
// are in use, kernels stay interpreted, and each is reported.
func TestObjectsFull(t *testing.T) {
	needCompiler(t)
	collected(t, "an object of an earlier test", func() bool { return ccode.Objects() == 0 })
	was := compileLimits
	compileLimits.Objects = 3
	t.Cleanup(func() { compileLimits = was })
	d, faults := faulty(t, runtime.Config{Threads: 1, Compile: runtime.CompileWait, OnCompile: func(_ runtime.Kernel, _ float64, err error) {
		var full *ccode.FullError
		if err != nil && !errors.As(err, &full) {
			t.Error(err)
		}
	}})
	for n := range 6 { // none of them is kept
		runNumbered(t, d, n)
	}
	if s := d.Stats(); s.Compiles != 6 || s.Tier0 != 0 || faults.Load() != 0 || ccode.Objects() > 3 {
		t.Fatalf("dropped kernels: %d compiles, %d interpreted, %d faults, %d objects", s.Compiles, s.Tier0, faults.Load(), ccode.Objects())
	}
	var kept []runtime.Program
	for n := range 5 {
		p, err := d.Build(kernelOf(t, 100+n))
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, p)
		runNumbered(t, d, 100+n)
	}
	if s := d.Stats(); s.Compiles != 9 || s.CompileFails != 2 || s.Tier0 != 2 || s.Fallbacks != 2 || faults.Load() != 2 {
		t.Errorf("kernels in use: %d compiles, %d failed, %d interpreted, %d fallbacks, %d faults", s.Compiles, s.CompileFails, s.Tier0, s.Fallbacks, faults.Load())
	}
	goruntime.KeepAlive(kept)
	kept = nil
	collected(t, "an object", func() bool { return ccode.Objects() == 0 })
	runNumbered(t, d, 103)
	if s := d.Stats(); s.Compiles != 10 {
		t.Errorf("%d compiles once there was room again, want one more than 9", s.Compiles)
	}
}

// TestLifetimeHammer builds, runs, tries, compiles and drops programs on several goroutines during
// constant garbage collection: nothing that still runs may be freed.
func TestLifetimeHammer(t *testing.T) {
	for _, c := range []runtime.Config{
		{Threads: 2, Tier: -1},
		{Threads: 2, Compile: runtime.CompileWait},
		byC(runtime.Config{Threads: 2, Compile: runtime.CompileWait, Cache: &mapCache{entries: map[string][]byte{}}}), // loads more than it compiles
		byC(runtime.Config{Threads: 2, Cache: &mapCache{entries: map[string][]byte{}}}),
	} {
		if c.Compile == runtime.CompileC && ccode.Find() == "" {
			continue
		}
		hammerLifetimes(t, openTest(t, c))
	}
}

func hammerLifetimes(t *testing.T, d *device) {
	var stop atomic.Bool
	var collector, runners sync.WaitGroup
	collector.Go(func() {
		for !stop.Load() {
			goruntime.GC()
		}
	})
	end := time.Now().Add(time.Second)
	for g := range 4 {
		runners.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 7))
			for time.Now().Before(end) {
				n := rng.IntN(12)
				runNumbered(t, d, n)
				tryNumbered(t, d, n, rng)
			}
		})
	}
	runners.Wait()
	stop.Store(true)
	collector.Wait()
	if err := d.Wait(true); err != nil {
		t.Error(err)
	}
}

// tryNumbered runs a kernel as the tuner does, starts a compile that no run waits for, and forgets
// the program.
func tryNumbered(t *testing.T, d *device, n int, rng *rand.Rand) {
	k := kernelOf(t, n)
	h := kernels.NewLaunch(rng, k, []int64{1 << 14}, 1, kernels.Dense)
	bound(t, d, k, h, func(l *runtime.Launch) {
		if c := d.Choices(l); len(c.List) > 0 {
			l.Choice = c.List[rng.IntN(len(c.List))].Code
		}
		if _, err := d.Try(l); err != nil {
			t.Error(err)
		}
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Error(err)
		}
		if rng.IntN(2) == 0 {
			d.Forget(l.Prog)
		}
	})
}
