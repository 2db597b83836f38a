//go:build cgo && unix

package cpu

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// tryLater tries a kernel by another choice of its code, which a compiler that
// stands still has to make first; begun is called when that is queued.
func tryLater(t *testing.T, d *device, k *codegen.Kernel, begun func(runtime.Program)) error {
	t.Helper()
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{1000}, 1, kerneltest.Dense)
	var err error
	bound(t, d, k, h, func(l *runtime.Launch) {
		l.Choice = uint64(turn(knobUnroll, 4))
		tried := make(chan error, 1)
		go func() {
			_, err := d.Try([]runtime.Launch{*l})
			tried <- err
		}()
		p := l.Prog.(*program)
		until(t, "the try asks for code", func() bool {
			d.comp.mu.Lock()
			defer d.comp.mu.Unlock()
			return slices.ContainsFunc(d.comp.queue, func(v *variant) bool { return v.sched.prog == p })
		})
		begun(l.Prog)
		select {
		case err = <-tried:
		case <-time.After(time.Minute):
			t.Fatal("the try does not end")
		}
	})
	return err
}

// until waits for something that is about to happen.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

// TestAwaited: code that somebody waits for is made before what is only hot, and
// also where its program is forgotten meanwhile: else whoever waits would do so
// for ever.
func TestAwaited(t *testing.T) {
	cc := needCompiler(t)
	gate := filepath.Join(t.TempDir(), "gate")
	fakeCompiler(t, `while [ ! -e `+gate+` ]; do sleep 0.01; done; exec `+cc+` "$@"`)
	var mu sync.Mutex
	var order []string
	d := openTest(t, runtime.Config{Threads: 1, OnCompile: func(k runtime.Kernel, _ float64, _ error) {
		mu.Lock()
		defer mu.Unlock()
		for _, op := range []string{"mul", "add", "sub", "div"} {
			if strings.Contains(k.String(), op+" %0") {
				order = append(order, op)
			}
		}
	}})
	ks := arithmetic(t, "mul", "add", "sub", "div")
	for _, k := range ks[:3] { // the first one's compiler stands still, the others are queued
		onDevice(t, d, k, kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kerneltest.Dense))
		until(t, "mul is being compiled", func() bool {
			d.comp.mu.Lock()
			defer d.comp.mu.Unlock()
			return d.comp.busy
		})
	}
	err := tryLater(t, d, ks[3], func(p runtime.Program) {
		d.Forget(p)
		if n := d.Stats().Dropped; n != 0 {
			t.Errorf("%d compiles dropped that are waited for", n)
		}
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(order, []string{"mul", "div", "add", "sub"}) {
		t.Errorf("compiled in the order %v", order)
	}
}

// TestCloseEndsATry: closing does not wait for compilers that a try waits for.
func TestCloseEndsATry(t *testing.T) {
	needCompiler(t)
	fakeCompiler(t, "sleep 100")
	d := openTest(t, runtime.Config{Threads: 1})
	ks := arithmetic(t, "mul", "add")
	onDevice(t, d, ks[0], kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), ks[0], []int64{600000}, 1, kerneltest.Dense))
	until(t, "mul is being compiled", func() bool {
		d.comp.mu.Lock()
		defer d.comp.mu.Unlock()
		return d.comp.busy
	})
	begin := time.Now()
	err := tryLater(t, d, ks[1], func(runtime.Program) { d.Quit() })
	if !errors.Is(err, errNoCode) {
		t.Errorf("a try without code: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if spent := time.Since(begin); spent > 20*time.Second {
		t.Errorf("Close took %v", spent)
	}
}
