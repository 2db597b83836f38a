//go:build cgo && unix

package cpu

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
)

// needCompiler returns the C compiler for kernels. If there is none it skips the test, or fails it
// if MILLRACE_REQUIRE names the CPU device.
func needCompiler(t testing.TB) string {
	t.Helper()
	cc := ccode.Find()
	if cc == "" {
		missing(t, "no C compiler here")
	}
	return cc
}

// missing skips a test, or fails it if MILLRACE_REQUIRE names the device.
func missing(t testing.TB, what string) {
	t.Helper()
	if strings.Contains(os.Getenv("MILLRACE_REQUIRE"), "cpu") {
		t.Fatal(what)
	}
	t.Skip(what)
}

// faulty opens a device for C that counts faults instead of failing the test.
func faulty(t *testing.T, c runtime.Config) (*device, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	c.OnError = func(err error) {
		var ce *runtime.CompileError
		if !errors.As(err, &ce) || ce.Kernel == "" {
			t.Errorf("reported %T: %v", err, err)
		}
		n.Add(1)
	}
	d, err := open(byC(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, &n
}

func fakeCompiler(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cc")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", path)
}

// TestFaultyCompiler checks that, whatever a compiler does, tier 0 computes correct values, and
// the fault is counted and reported.
func TestFaultyCompiler(t *testing.T) {
	for name, arm := range map[string]func(t *testing.T){
		"fails": func(t *testing.T) { fakeCompiler(t, "echo bad flag; exit 1") },
		"makes rubbish": func(t *testing.T) {
			fakeCompiler(t, `while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo rubbish >"$2"; fi; shift; done`)
		},
		"hangs": func(t *testing.T) {
			fakeCompiler(t, "sleep 100 & sleep 100")
			patience(t, 200*time.Millisecond)
		},
		"cuts its object short": func(t *testing.T) {
			fakeCompiler(t, `for a; do case "$last" in -o) out=$a;; esac; last=$a; done
`+needCompiler(t)+` "$@" && head -c 5000 "$out" >"$out.cut" && mv "$out.cut" "$out"`)
		},
		"prints without end": func(t *testing.T) {
			fakeCompiler(t, "exec yes")
			patience(t, 200*time.Millisecond)
		},
		"makes a pipe": func(t *testing.T) {
			fakeCompiler(t, `for a; do if [ "$last" = -o ]; then mkfifo "$a"; fi; last=$a; done`)
		},
		"crashes":       func(t *testing.T) { fakeCompiler(t, "kill -SEGV $$") },
		"injected":      func(t *testing.T) { fault.Set(fault.Compile, -1); t.Cleanup(fault.Reset) },
		"does not load": func(t *testing.T) { fault.Set(fault.Load, -1); t.Cleanup(fault.Reset) },
		"no directory":  func(t *testing.T) { t.Setenv("TMPDIR", "/nonexistent") },
		"contracts": func(t *testing.T) {
			fakeCompiler(t, `exec `+needCompiler(t)+` "$@" -ffast-math`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			arm(t)
			begin := time.Now()
			d, reported := faulty(t, runtime.Config{Compile: runtime.CompileWait, Threads: 2})
			k := scaled(t)
			hold(t, d, k)
			h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kernels.Dense)
			compare(t, name, k, onDevice(t, d, k, h), reference(t, k, h))
			compare(t, name, k, onDevice(t, d, k, h), reference(t, k, h))
			s := d.Stats()
			if s.CompileFails != 1 || s.Compiles != 0 || s.Fallbacks != 2 || s.Tier0 != 2 || reported.Load() != 1 {
				t.Errorf("%d failures, %d compiles, %d fallbacks, %d in tier 0, %d reported", s.CompileFails, s.Compiles, s.Fallbacks, s.Tier0, reported.Load())
			}
			if spent := time.Since(begin); spent > 30*time.Second {
				t.Errorf("took %v", spent)
			}
		})
	}
}

// patience shortens the time that compilers get, for a test.
func patience(t *testing.T, d time.Duration) {
	old := compileLimits
	compileLimits.Patience = d
	t.Cleanup(func() { compileLimits = old })
}

// TestHangingCompiler checks that a compiler that hangs, at whichever attempt, is started once and
// then given up for all kernels. The runs that wait for it wait no longer than its patience in
// total.
func TestHangingCompiler(t *testing.T) {
	cc := needCompiler(t)
	known := func(t *testing.T, cache *mapCache) { // caches its flags, from a process in which it worked
		k := kernelOf(t, 7)
		d := openTest(t, byC(runtime.Config{Compile: runtime.CompileWait, Threads: 1, Cache: cache}))
		onDevice(t, d, k, kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kernels.Dense))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, prepare := range map[string]func(t *testing.T, cache *mapCache){
		"at its flags": func(*testing.T, *mapCache) {},
		"at a kernel":  known,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			runs, hangs := filepath.Join(dir, "runs"), filepath.Join(dir, "hangs")
			fakeCompiler(t, `[ ! -e `+hangs+` ] && exec `+cc+` "$@"; echo >>`+runs+`; sleep 100`)
			cache := &mapCache{entries: map[string][]byte{}}
			prepare(t, cache)
			if err := os.WriteFile(hangs, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			patience(t, 500*time.Millisecond)
			begin := time.Now()
			d, reported := faulty(t, runtime.Config{Compile: runtime.CompileWait, Threads: 1, Cache: cache})
			for _, k := range arithmetic(t, "mul", "add", "sub", "div") {
				h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kernels.Dense)
				compare(t, name, k, onDevice(t, d, k, h), reference(t, k, h))
			}
			if text, err := os.ReadFile(runs); err != nil || len(text) != 1 {
				t.Errorf("the compiler was started %d times, %v", len(text), err)
			}
			s := d.Stats()
			if s.CompileFails != 1 || s.Fallbacks != 4 || s.Tier0 != 4 || reported.Load() != 1 {
				t.Errorf("%d failures, %d fallbacks, %d in tier 0, %d reported", s.CompileFails, s.Fallbacks, s.Tier0, reported.Load())
			}
			if spent := time.Since(begin); spent > 30*time.Second {
				t.Errorf("took %v", spent)
			}
		})
	}
}

// TestBackground checks that no launch waits for the compiler, that its code is swapped in, and
// that small work never starts a compiler.
func TestBackground(t *testing.T) {
	needCompiler(t)
	d := openTest(t, byC(runtime.Config{Threads: 2}))
	k := scaled(t)
	hold(t, d, k)
	small := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kernels.Dense)
	large := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kernels.Dense)
	onDevice(t, d, k, small)
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.Compiles != 0 || s.Tier0 != 1 {
		t.Errorf("a small launch: %d compiles, %d in tier 0", s.Compiles, s.Tier0)
	}
	before := onDevice(t, d, k, large)
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	after := onDevice(t, d, k, large)
	compare(t, "swapped in", k, after, before)
	if s := d.Stats(); s.Compiles != 1 || s.Tier0 != 2 || s.Launches != 3 || s.Fallbacks != 0 {
		t.Errorf("%d compiles, %d of %d launches in tier 0, %d fallbacks", s.Compiles, s.Tier0, s.Launches, s.Fallbacks)
	}
}

// TestLongLaunchWaits checks that a launch waits for the C compiler if interpreting it would take
// longer than compiling, also a launch of a plan that will be replaced.
func TestLongLaunchWaits(t *testing.T) {
	needCompiler(t)
	d := openTest(t, byC(runtime.Config{Threads: 1}))
	k := scaled(t)
	hold(t, d, k)
	built, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	r := ready{p: built.(*program), rowOrder: rowOrder{threads: 1}}
	least := sort.Search(1<<26, func(n int) bool { r.total = int64(n); return r.longInterpreted() })
	if least < 4<<20 || least > 16<<20 {
		t.Fatalf("launches of %d points wait", least)
	}
	provisional(t, d, k, int64(least), false)
	if s := d.Stats(); s.Compiles != 1 || s.Tier0 != 0 || s.Fallbacks != 0 {
		t.Errorf("%d compiles, %d in tier 0, %d fallbacks", s.Compiles, s.Tier0, s.Fallbacks)
	}
}

// TestForget checks that compiles of forgotten programs are dropped, that such programs queue
// none, and that a program that is built again does.
func TestForget(t *testing.T) {
	cc := needCompiler(t)
	gate := filepath.Join(t.TempDir(), "gate")
	fakeCompiler(t, `while [ ! -e `+gate+` ]; do sleep 0.01; done; exec `+cc+` "$@"`)
	d := openTest(t, byC(runtime.Config{Threads: 1}))
	var programs []runtime.Program
	var hs []*kernels.Launch
	var ks []*codegen.Kernel
	for _, op := range []string{"mul", "add", "sub"} {
		k, err := codegen.Parse("in 0 : float32\nout 1 : float32\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = " + op + " %0 %1 : float32\nstore 1 %2\n")
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Build(k)
		if err != nil {
			t.Fatal(err)
		}
		h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kernels.Dense)
		onDevice(t, d, k, h) // hot at once: the first kernel is being compiled, or its compiler is being tried
		programs, hs, ks = append(programs, p), append(hs, h), append(ks, k)
	}
	d.Forget(programs[1])
	d.Forget(programs[2])
	dropped := d.Stats().Dropped
	if dropped != 2 {
		t.Errorf("%d compiles dropped, want 2", dropped)
	}
	onDevice(t, d, ks[2], hs[2]) // builds it again, so it is not forgotten any more
	d.Forget(programs[1])        // a second Forget has no effect
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.Compiles != 2 || s.Dropped != dropped || s.CompileFails != 0 {
		t.Errorf("%d compiles, %d dropped, %d failed", s.Compiles, s.Dropped, s.CompileFails)
	}
}

// TestCloseEndsCompiler checks that Close kills a compiler, drops the queue, and leaves no
// directory behind.
func TestCloseEndsCompiler(t *testing.T) {
	fakeCompiler(t, "sleep 100")
	t.Setenv("TMPDIR", t.TempDir())
	d := openTest(t, byC(runtime.Config{Threads: 2}))
	h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), scaled(t), []int64{600000}, 1, kernels.Dense)
	onDevice(t, d, scaled(t), h)
	for range 1000 {
		if dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "millrace-cc-*")); len(dirs) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	begin := time.Now()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if spent := time.Since(begin); spent > 20*time.Second {
		t.Errorf("Close took %v", spent)
	}
	if dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "millrace-cc-*")); len(dirs) > 0 {
		t.Errorf("left behind: %v", dirs)
	}
	if _, err := d.Build(scaled(t)); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("Build on a closed device: %v", err)
	}
	if err := d.Run(nil); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("Run on a closed device: %v", err)
	}
}

func TestTierNever(t *testing.T) {
	fakeCompiler(t, "touch "+filepath.Join(t.TempDir(), "ran")+"; exit 1")
	for _, c := range []runtime.Config{{Tier: -1}, {Compile: runtime.CompileOff}, {Compile: runtime.CompileNative}} {
		d := openTest(t, c)
		k := scaled(t)
		onDevice(t, d, k, kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kernels.Dense))
		if err := d.Wait(true); err != nil {
			t.Fatal(err)
		}
		if s := d.Stats(); s.CompileFails != 0 || s.Fallbacks != 0 || s.Compiles != 0 || (s.Tier0 == 1) == d.machine {
			t.Errorf("%+v", s)
		}
	}
}
