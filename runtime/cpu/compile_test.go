//go:build cgo && unix

package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// needCompiler returns the C compiler for kernels. If there is none it skips the test, or fails it
// if MILLRACE_REQUIRE names the CPU device.
func needCompiler(t testing.TB) string {
	t.Helper()
	cc := findCompiler()
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
			h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kerneltest.Dense)
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

// patience shortens compilePatience for a test.
func patience(t *testing.T, d time.Duration) {
	old := compilePatience
	compilePatience = d
	t.Cleanup(func() { compilePatience = old })
}

// TestHangingCompiler checks that a compiler that hangs, at whichever attempt, is started once and
// then given up for all kernels. The runs that wait for it wait no longer than compilePatience in
// total.
func TestHangingCompiler(t *testing.T) {
	cc := needCompiler(t)
	known := func(t *testing.T, cache *mapCache) { // caches its flags, from a process in which it worked
		tools, err := newToolchain(t.Context(), cache)
		if err != nil {
			t.Fatal(err)
		}
		tools.remove()
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
				h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kerneltest.Dense)
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

// TestCompileLog checks that both ends of a compiler's output are kept, whatever its pieces.
func TestCompileLog(t *testing.T) {
	text := make([]byte, 10*logPart)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	for _, n := range []int{0, 1, logPart, logPart + 1, 2 * logPart, 2*logPart + 1, 3*logPart - 7, len(text)} {
		for _, piece := range []int{1, 7, logPart - 1, logPart, 5 * logPart, len(text)} {
			var l logEnds
			for at := 0; at < n; at += piece {
				if done, err := l.Write(text[at:min(at+piece, n)]); err != nil || done != min(at+piece, n)-at {
					t.Fatal(done, err)
				}
			}
			want := string(text[:n])
			if over := n - 2*logPart; over > 0 {
				want = fmt.Sprintf("%s\n... %d bytes left out ...\n%s", text[:logPart], over, text[n-logPart:n])
			}
			if l.String() != want {
				t.Errorf("%d bytes in pieces of %d: %d bytes are kept, not the ends", n, piece, len(l.String()))
			}
			if room := cap(l.head) + cap(l.tail); room > 4*logPart {
				t.Errorf("%d bytes in pieces of %d: kept in %d", n, piece, room)
			}
		}
	}
}

// TestBackground checks that no launch waits for the compiler, that its code is swapped in, and
// that small work never starts a compiler.
func TestBackground(t *testing.T) {
	needCompiler(t)
	d := openTest(t, byC(runtime.Config{Threads: 2}))
	k := scaled(t)
	hold(t, d, k)
	small := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{100}, 1, kerneltest.Dense)
	large := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kerneltest.Dense)
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
	var hs []*kerneltest.Launch
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
		h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kerneltest.Dense)
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

// TestForgetAwaited forgets a program while a launch waits for its code behind another compile:
// the launch gets the code.
func TestForgetAwaited(t *testing.T) {
	cc := needCompiler(t)
	gate := filepath.Join(t.TempDir(), "gate")
	fakeCompiler(t, `while [ ! -e `+gate+` ]; do sleep 0.01; done; exec `+cc+` "$@"`)
	d := openTest(t, byC(runtime.Config{Threads: 1}))
	first := scaled(t)
	hold(t, d, first)
	onDevice(t, d, first, kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), first, []int64{600000}, 1, kerneltest.Dense)) // occupies the compiler
	k := kernelOf(t, 7)
	p, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		provisional(t, d, k, 16<<20, false)
	}()
	for waiting := 0; waiting == 0; goruntime.Gosched() {
		select {
		case <-ran:
			t.Fatal("the launch did not wait for its code")
		default:
		}
		d.comp.mu.Lock()
		waiting = d.comp.waiting
		d.comp.mu.Unlock()
	}
	d.Forget(p)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-ran
	if s := d.Stats(); s.Dropped != 0 || s.CompileFails != 0 {
		t.Errorf("%d compiles dropped, %d failed", s.Dropped, s.CompileFails)
	}
}

// TestNice checks that compilers run at low priority if no launch waits for them, and at normal
// priority if one does.
func TestNice(t *testing.T) {
	needCompiler(t)
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[runtime.CompileMode]bool{runtime.CompileC: true, runtime.CompileWait: false} {
		said := filepath.Join(t.TempDir(), "nice")
		fakeCompiler(t, `sleep 0.1; nice >>`+said+`; exec cc "$@"`)
		d := openTest(t, byC(runtime.Config{Threads: 1, Compile: mode}))
		k := scaled(t)
		onDevice(t, d, k, kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kerneltest.Dense))
		if err := d.Wait(true); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		if goruntime.GOOS == "linux" && 20-own >= niceness {
			t.Skip("whoever runs this test gives way himself")
		}
		runs := strings.Fields(string(text))
		last, err := strconv.Atoi(runs[len(runs)-1]) // the first run only identifies the compiler
		if err != nil {
			t.Fatal(err)
		}
		if goruntime.GOOS == "linux" {
			own = 20 - own // the value that the system call returns
		}
		if nice := last > own && last >= niceness; nice != want {
			t.Errorf("mode %v: niceness %d, ours is %d", mode, last, own)
		}
		if goruntime.GOOS == "linux" {
			own = 20 - own
		}
	}
}

// TestOneCompiler checks that compilers run one after another, however many kernels are hot.
func TestOneCompiler(t *testing.T) {
	cc := needCompiler(t)
	dir := t.TempDir()
	fakeCompiler(t, `mkdir `+dir+`/busy || touch `+dir+`/two; sleep 0.05; `+cc+` "$@"; rc=$?; rmdir `+dir+`/busy; touch `+dir+`/ran; exit $rc`)
	d := openTest(t, byC(runtime.Config{Threads: 2}))
	for _, k := range arithmetic(t, "mul", "add", "sub", "div") {
		onDevice(t, d, k, kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kerneltest.Dense))
	}
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	if n := d.Stats().Compiles; n != 4 {
		t.Errorf("%d compiles", n)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "two")); err == nil {
		t.Error("two compilers ran at a time")
	}
}

// TestCloseEndsCompiler checks that Close kills a compiler, drops the queue, and leaves no
// directory behind.
func TestCloseEndsCompiler(t *testing.T) {
	fakeCompiler(t, "sleep 100")
	t.Setenv("TMPDIR", t.TempDir())
	d := openTest(t, byC(runtime.Config{Threads: 2}))
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), scaled(t), []int64{600000}, 1, kerneltest.Dense)
	onDevice(t, d, scaled(t), h)
	for range 1000 {
		if dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), workPattern)); len(dirs) > 0 {
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
	if dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), workPattern)); len(dirs) > 0 {
		t.Errorf("left behind: %v", dirs)
	}
	if _, err := d.Build(scaled(t)); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("Build on a closed device: %v", err)
	}
	if err := d.Run(nil); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("Run on a closed device: %v", err)
	}
}

// TestSweep checks that directories of dead owners are removed and others stay.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	live, err := newWorkDir()
	if err != nil {
		t.Fatal(err)
	}
	defer live.remove()
	dead, err := newWorkDir()
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as when its process ends
	young, old := filepath.Join(os.TempDir(), newPrefix+"1"), filepath.Join(os.TempDir(), newPrefix+"2")
	for _, dir := range []string{young, old} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if ago := time.Now().Add(-2 * abandoned); os.Chtimes(old, ago, ago) != nil {
		t.Fatal("no time of a directory can be set")
	}
	sweep(os.TempDir())
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("a directory whose owner died before it was locked: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("a directory that is being made: %v", err)
	}
	if _, err := os.Stat(dead.path); !os.IsNotExist(err) {
		t.Errorf("a dead owner's directory: %v", err)
	}
	if _, err := os.Stat(live.path); err != nil {
		t.Errorf("a live owner's directory: %v", err)
	}
	if info, err := os.Stat(live.path); err == nil && info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
}

// TestSweepAtOnce starts many processes' sweeps at once: none may remove a directory that another
// has just made and not locked yet.
func TestSweepAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				d, err := newWorkDir()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(d.path, lockName)); err != nil {
					t.Error("a new directory:", err)
				}
				d.remove()
			}
		})
	}
	all.Wait()
}

// TestLoadRefuses checks that load refuses an object without the kernel, or one that fails the
// probe.
func TestLoadRefuses(t *testing.T) {
	needCompiler(t)
	tools, err := newToolchain(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tools.remove()
	for source, want := range map[string]error{
		"int mr_probe(void) { return 1; } void mr_kernel(void) {}": errProbe,
		"int mr_probe(void) { return 0; }":                         nil,
		"void mr_kernel(void) {}":                                  nil,
	} {
		path, err := tools.compile(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = load(path, kernelSymbol); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestTierNever(t *testing.T) {
	fakeCompiler(t, "touch "+filepath.Join(t.TempDir(), "ran")+"; exit 1")
	for _, c := range []runtime.Config{{Tier: -1}, {Compile: runtime.CompileOff}, {Compile: runtime.CompileNative}} {
		d := openTest(t, c)
		k := scaled(t)
		onDevice(t, d, k, kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kerneltest.Dense))
		if err := d.Wait(true); err != nil {
			t.Fatal(err)
		}
		if s := d.Stats(); s.CompileFails != 0 || s.Fallbacks != 0 || s.Compiles != 0 || (s.Tier0 == 1) == d.machine {
			t.Errorf("%+v", s)
		}
	}
}
