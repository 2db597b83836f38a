//go:build cgo && unix

package ccode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// limits are those of a device.
var limits = Limits{Patience: time.Minute, Objects: 4096}

// needCompiler returns the C compiler. If there is none it skips the test, or fails it if
// MILLRACE_REQUIRE names the CPU device.
func needCompiler(t *testing.T) string {
	t.Helper()
	cc := Find()
	if cc == "" && strings.Contains(os.Getenv("MILLRACE_REQUIRE"), "cpu") {
		t.Fatal("no C compiler here")
	}
	if cc == "" {
		t.Skip("no C compiler here")
	}
	return cc
}

func fakeCompiler(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cc")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", path)
}

// gated makes the compiler wait until open is called.
func gated(t *testing.T) (open func()) {
	t.Helper()
	cc, gate := needCompiler(t), filepath.Join(t.TempDir(), "gate")
	fakeCompiler(t, `while [ ! -e `+gate+` ]; do sleep 0.01; done; exec `+cc+` "$@"`)
	return func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// opened returns a compiler that is closed at the end of the test.
func opened(t *testing.T, cfg Config) *Compiler {
	cfg.Limits = limits
	c := New(cfg)
	t.Cleanup(func() {
		c.Stop()
		c.Close()
	})
	return c
}

// oneOp is a kernel that applies an op to each element and a scalar.
type oneOp struct {
	op      string
	heat    int64
	results []Result
	done    func()
}

func (k *oneOp) String() string {
	return "in 0 : float32\nout 1 : float32\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = " + k.op + " %0 %1 : float32\nstore 1 %2\n"
}

func (k *oneOp) Units() ([]cgo.Unit, error) {
	parsed, err := codegen.Parse(k.String())
	if err != nil {
		return nil, err
	}
	lowered, err := codegen.Lower(parsed)
	if err != nil {
		return nil, err
	}
	dense := cgo.Variant{Class: []codegen.AccessClass{codegen.Contiguous, codegen.Contiguous}}
	return []cgo.Unit{{Name: "mr_kernel", Kernel: lowered, Variant: dense}}, nil
}

func (k *oneOp) Heat() int64 { return k.heat }

func (k *oneOp) Finish(r Result) {
	k.results = append(k.results, r)
	if k.done != nil {
		k.done()
	}
}

// check runs points 1 and 2 of 4 and compares the results.
func (k *oneOp) check(t *testing.T, x, scalar, want float32) {
	t.Helper()
	if len(k.results) != 1 || k.results[0].Err != nil || len(k.results[0].Phases) != 1 {
		t.Fatalf("%s: %+v", k.op, k.results)
	}
	p := k.results[0].Phases[0]
	in, out := []float32{x, x, x, x}, make([]float32, 4)
	a := operands.Args{Rank: 1, Ops: make([]operands.Operand, 2), Scratch: make([]byte, p.Scratch())}
	a.Dims[0] = 4
	for i, mem := range [][]float32{in, out} {
		a.Ops[i].Base = unsafe.Pointer(unsafe.SliceData(mem))
		a.Ops[i].Stride[0] = 1
	}
	a.Scalars = []uint64{uint64(*(*uint32)(unsafe.Pointer(&scalar)))}
	p.Eval(&a, 1, 3)
	if got := []float32{0, want, want, 0}; !slices.Equal(out, got) {
		t.Errorf("%s: %v, want %v", k.op, out, got)
	}
}

// TestCompiler checks that a kernel gets its code, and that the next compiler takes it from the
// cache.
func TestCompiler(t *testing.T) {
	needCompiler(t)
	cache := &mapCache{}
	for _, recalled := range []bool{false, true} {
		var told []string
		c := opened(t, Config{Cache: cache, Waits: true, OnCompile: func(k Kernel, took time.Duration, err error) {
			told = append(told, fmt.Sprint(k.(*oneOp).op, took > 0, err))
		}})
		k := &oneOp{op: "mul"}
		j := NewJob(k)
		c.Await(j)
		k.check(t, 3, 2, 6)
		c.Wait()
		c.Add(j) // has no effect
		c.Await(j)
		if r := k.results[0]; r.Recalled != recalled || (r.Took > 0) == recalled || len(k.results) != 1 {
			t.Errorf("recalled %v: %+v", recalled, k.results)
		}
		if want := []string{"multrue <nil>"}; !slices.Equal(told, want) && !recalled || recalled && told != nil {
			t.Errorf("recalled %v: told %q", recalled, told)
		}
	}
}

type mapCache map[string][]byte

func (c *mapCache) Get(kind, key string) ([]byte, bool) {
	v, ok := (*c)[kind+" "+key]
	return v, ok
}

func (c *mapCache) Put(kind, key string, value []byte) error {
	(*c)[kind+" "+key] = value
	return nil
}

func (c *mapCache) Refuse(string, error) {}

// TestCompileError checks that the outcome of a kernel that does not compile names its text and
// the compiler's.
func TestCompileError(t *testing.T) {
	cc := needCompiler(t)
	fakeCompiler(t, `for a; do case $a in *.c) grep -q mr_kernel "$a" && echo bad kernel && exit 1;; esac; done; exec `+cc+` "$@"`)
	k := &oneOp{op: "mul"}
	c := opened(t, Config{})
	c.Await(NewJob(k))
	var failed *runtime.CompileError
	if len(k.results) != 1 || !errors.As(k.results[0].Err, &failed) || k.results[0].Phases != nil {
		t.Fatalf("%+v", k.results)
	}
	if failed.Kernel != k.String() || !strings.Contains(failed.Log, "bad kernel") || !strings.Contains(failed.Source, "mr_kernel") {
		t.Errorf("%+v", failed)
	}
}

// TestHottestFirst checks the order of the queue.
func TestHottestFirst(t *testing.T) {
	open := gated(t)
	c := opened(t, Config{})
	var order []string
	for i, op := range []string{"mul", "add", "sub", "div"} {
		c.Add(NewJob(&oneOp{op: op, heat: []int64{9, 1, 3, 2}[i], done: func() { order = append(order, op) }}))
		for taken := i > 0; !taken; goruntime.Gosched() { // the first job does not wait for hotter ones
			c.mu.Lock()
			taken = len(c.queue) == 0
			c.mu.Unlock()
		}
	}
	open()
	c.Wait()
	if want := []string{"mul", "sub", "div", "add"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// TestStop checks that the jobs of a compiler that is stopped end without code and without error,
// also those that come later.
func TestStop(t *testing.T) {
	fakeCompiler(t, "sleep 100")
	c := opened(t, Config{})
	ks := []*oneOp{{op: "mul"}, {op: "add"}, {op: "sub"}}
	c.Add(NewJob(ks[0]))
	c.Add(NewJob(ks[1]))
	c.Stop()
	c.Await(NewJob(ks[2]))
	for _, k := range ks {
		if len(k.results) != 1 || k.results[0].Err != nil || k.results[0].Phases != nil {
			t.Errorf("%s: %+v", k.op, k.results)
		}
	}
}

// TestForgetAwaited forgets a kernel while a launch waits for its code behind another compile: the
// launch gets the code.
func TestForgetAwaited(t *testing.T) {
	open := gated(t)
	c := opened(t, Config{})
	c.Add(NewJob(&oneOp{op: "add"})) // occupies the compiler
	k := &oneOp{op: "mul"}
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		c.Await(NewJob(k))
	}()
	for waiting := 0; waiting == 0; goruntime.Gosched() {
		select {
		case <-ran:
			t.Fatal("the launch did not wait for its code")
		default:
		}
		c.mu.Lock()
		waiting = c.waiting
		c.mu.Unlock()
	}
	if n := c.Forget(func(of Kernel) bool { return of == k }); n != 0 {
		t.Errorf("%d compiles dropped", n)
	}
	open()
	<-ran
	k.check(t, 3, 2, 6)
}

// TestForget checks that a forgotten job is not compiled, and that it can be added again.
func TestForget(t *testing.T) {
	open := gated(t)
	c := opened(t, Config{})
	first, k := &oneOp{op: "add"}, &oneOp{op: "mul"}
	j := NewJob(k)
	c.Add(NewJob(first))
	c.Add(j)
	if n := c.Forget(func(of Kernel) bool { return of == k }); n != 1 {
		t.Errorf("%d compiles dropped", n)
	}
	open()
	c.Wait()
	if len(k.results) != 0 {
		t.Errorf("a forgotten job has ended: %+v", k.results)
	}
	c.Add(j)
	c.Wait()
	k.check(t, 3, 2, 6)
	first.check(t, 3, 2, 5)
}

// TestNice checks that compilers run at low priority if no launch waits for them, and at normal
// priority if one does.
func TestNice(t *testing.T) {
	needCompiler(t)
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	if goruntime.GOOS == "linux" {
		own = 20 - own // the value that the system call returns
		if own >= niceness {
			t.Skip("this test runs at low priority itself")
		}
	}
	for _, waits := range []bool{false, true} {
		said := filepath.Join(t.TempDir(), "nice")
		fakeCompiler(t, `sleep 0.1; nice >>`+said+`; exec cc "$@"`)
		c, j := opened(t, Config{Waits: waits}), NewJob(&oneOp{op: "mul"})
		if waits {
			c.Await(j)
		} else {
			c.Add(j)
		}
		c.Wait()
		text, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		runs := strings.Fields(string(text))
		last, err := strconv.Atoi(runs[len(runs)-1]) // the first run tries the compiler's flags
		if err != nil {
			t.Fatal(err)
		}
		if nice := last > own && last >= niceness; nice == waits {
			t.Errorf("launches wait %v: niceness %d, ours is %d", waits, last, own)
		}
	}
}

// TestOneCompiler checks that compilers run one after another, however many kernels are hot.
func TestOneCompiler(t *testing.T) {
	cc := needCompiler(t)
	dir := t.TempDir()
	fakeCompiler(t, `mkdir `+dir+`/busy || touch `+dir+`/two; sleep 0.05; `+cc+` "$@"; rc=$?; rmdir `+dir+`/busy; touch `+dir+`/ran; exit $rc`)
	c, compiles := opened(t, Config{}), 0
	for _, op := range []string{"mul", "add", "sub", "div"} {
		k := &oneOp{op: op}
		k.done = func() {
			if k.results[0].Phases != nil {
				compiles++
			}
		}
		c.Add(NewJob(k))
	}
	c.Wait()
	if compiles != 4 {
		t.Errorf("%d compiles", compiles)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "two")); err == nil {
		t.Error("two compilers ran at a time")
	}
}
