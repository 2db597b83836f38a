package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// machineTest returns kernels with several phases, forms and folds.
func machineTest(t testing.TB) map[string]*codegen.Kernel {
	t.Helper()
	return map[string]*codegen.Kernel{"softmax": rowKernel(t, rowtext.Softmax), "norm": rowKernel(t, rowtext.Norm), "points": kernels.MixedKernel()}
}

// launchOf returns a launch whose rows, if the kernel has rows, are long enough for folds.
func launchOf(k *codegen.Kernel, seed uint64) *kernels.Launch {
	kept := 2
	if k.HasRows() {
		kept = 1
	}
	return kernels.NewLaunch(rand.New(rand.NewPCG(seed, 5)), k, []int64{5, 700}, kept, kernels.Dense)
}

// inOwnProcess runs a test in its own process, because folds that were refused memory stay without
// code for the life of the process. It returns true in that process.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	const variable = "MILLRACE_TEST_CHILD"
	if os.Getenv(variable) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skipf("an emulator runs this process, which can start none of its kind: set %s=1 and run this test alone", variable)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// TestRefusedMemory refuses memory for code, and then making it executable, at every step: results
// must be correct, and the refusal counted and reported once.
func TestRefusedMemory(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	if !inOwnProcess(t) {
		return
	}
	for _, point := range []string{fault.MapCode, fault.ProtectCode} {
		for name, k := range machineTest(t) {
			for pass := 0; ; pass++ {
				told := 0
				d := openTest(t, runtime.Config{Compile: runtime.CompileNative, Threads: 2, Tier: 1, OnError: func(err error) {
					var no *machine.Error
					if !errors.As(err, &no) {
						t.Errorf("%s: %v", name, err)
					}
					told++
				}})
				lesser := jit.Refused.Load()
				live, _ := machine.Live()
				fault.SetAfter(point, pass, 1)
				h := launchOf(k, uint64(pass))
				want := reference(t, k, h)
				for range 3 {
					compare(t, fmt.Sprintf("%s, %s refused after %d", name, point, pass), k, onDevice(t, d, k, h), want)
				}
				fault.Reset()
				s, lost := d.Stats(), jit.Refused.Load()-lesser
				if now, _ := machine.Live(); now > live+16 {
					t.Errorf("%d mappings, %d before", now, live)
				}
				if s.NativeRefused == lesser { // no step was left to refuse
					if pass == 0 || s.NativeKernels != 1 || told > 0 {
						t.Errorf("%s, %s: %d kernels, told %d times, after %d steps", name, point, s.NativeKernels, told, pass)
					}
					break
				}
				if refused := s.NativeRefused - jit.Refused.Load(); refused+lost != 1 || told != int(refused) || s.NativeKernels != 1-refused {
					t.Errorf("%s, %s after %d: %d refused, %d lesser ones, %d kernels, told %d times", name, point, pass, refused, lost, s.NativeKernels, told)
				}
				if s.NativeRefused > jit.Refused.Load() && (s.Fallbacks == 0 || s.Tier0 == 0) {
					t.Errorf("%s: %d fallbacks, %d interpreted", name, s.Fallbacks, s.Tier0)
				}
				d.Close()
			}
		}
	}
}

// TestRefusedForEver checks that a lack of memory for code is reported once, for any number of
// kernels, and counted for each.
func TestRefusedForEver(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	if !inOwnProcess(t) {
		return
	}
	fault.Set(fault.ProtectCode, -1)
	defer fault.Reset()
	told := 0
	d := openTest(t, runtime.Config{Compile: runtime.CompileNative, Threads: 1, Tier: 1, OnError: func(error) { told++ }})
	for _, k := range machineTest(t) {
		hold(t, d, k)
		for range 2 {
			h := launchOf(k, 3)
			compare(t, "refused", k, onDevice(t, d, k, h), reference(t, k, h))
		}
	}
	if s := d.Stats(); told != 1 || s.NativeRefused-jit.Refused.Load() != 3 || s.NativeKernels != 0 || s.Fallbacks != 6 {
		t.Errorf("told %d times, %d refused, %d kernels, %d fallbacks", told, s.NativeRefused-jit.Refused.Load(), s.NativeKernels, s.Fallbacks)
	}
}

// TestRefusedKernel checks that a kernel that cannot become code is interpreted, counted and
// reported.
func TestRefusedKernel(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	fault.Set(fault.Compile, 1)
	defer fault.Reset()
	var told []error
	d := openTest(t, runtime.Config{Compile: runtime.CompileNative, Threads: 1, Tier: 1, OnError: func(err error) { told = append(told, err) }})
	k := kernels.MixedKernel()
	hold(t, d, k)
	h := launchOf(k, 4)
	for range 3 {
		compare(t, "refused", k, onDevice(t, d, k, h), reference(t, k, h))
	}
	var ce *runtime.CompileError
	if s := d.Stats(); len(told) != 1 || !errors.As(told[0], &ce) || s.NativeRefused-jit.Refused.Load() != 1 || s.CompileFails != 1 || s.Fallbacks != 3 {
		t.Errorf("told %v, %+v", told, s)
	}
}

// TestNoExecutableMemory checks that a device without machine code never even requests a mapping:
// a filter of system calls may kill a process that does.
func TestNoExecutableMemory(t *testing.T) {
	if !machine.Supported() {
		t.Skip("no executable memory here to be asked for")
	}
	if !inOwnProcess(t) {
		return
	}
	fault.Set(fault.MapCode, -1) // each request is refused, and counted
	defer fault.Reset()
	lesser := jit.Refused.Load()
	live, _ := machine.Live()
	for _, c := range []runtime.Config{{Compile: runtime.CompileOff}, {Compile: runtime.CompileC, Tier: -1}, {Compile: runtime.CompileNative, Tier: -1}} {
		c.Threads = 2
		d := openTest(t, c)
		for name, k := range machineTest(t) {
			h := launchOf(k, 6)
			for range 3 {
				compare(t, name, k, onDevice(t, d, k, h), reference(t, k, h))
			}
		}
		if s := d.Stats(); s.NativeRefused != lesser || s.NativeKernels != 0 || jit.Refused.Load() != lesser {
			t.Errorf("compile mode %d, tier %d: %d asked for, %d made", c.Compile, c.Tier, s.NativeRefused-lesser, s.NativeKernels)
		}
	}
	if now, _ := machine.Live(); now > live {
		t.Errorf("%d mappings, %d before", now, live)
	}
}

// TestRefusedBesideC checks that the runtime's own loops are machine code also beside kernels of
// C. If that is refused, Go's loops run: this is counted, and the results are correct.
func TestRefusedBesideC(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	if !inOwnProcess(t) {
		return
	}
	fault.Set(fault.MapCode, -1)
	defer fault.Reset()
	lesser := jit.Refused.Load()
	d := openTest(t, runtime.Config{Compile: runtime.CompileC, Threads: 2})
	for name, k := range machineTest(t) {
		h := launchOf(k, 6)
		compare(t, name, k, onDevice(t, d, k, h), reference(t, k, h))
	}
	if s := d.Stats(); s.NativeRefused == 0 || jit.Refused.Load() == lesser || s.NativeKernels != 0 {
		t.Errorf("%d refused, %d kernels", s.NativeRefused, s.NativeKernels)
	}
}

// TestMakeMachines checks that threads make each variant once, and that a panic on any of them goes
// on in the caller.
func TestMakeMachines(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	d := opened(t, runtime.Config{Compile: runtime.CompileNative, Threads: 3})
	var list []*variant
	for _, k := range machineTest(t) {
		hold(t, d, k)
		bound(t, d, k, launchOf(k, 1), func(l *runtime.Launch) {
			r, err := d.order(l, 1)
			if err != nil {
				t.Fatal(err)
			}
			key := r.classKey()
			v := r.sched.variantFor(&key)
			list = append(list, v, v)
		})
	}
	d.makeMachines(list, 3)
	for _, v := range list {
		if v.code.Load() == nil {
			t.Errorf("no code of %s", v.sched.prog.text)
		}
	}
	if n := d.Stats().NativeKernels; int(n) != len(list)/2 {
		t.Errorf("%d kernels were made of %d", n, len(list)/2)
	}
	for range 20 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a panic was lost")
				}
			}()
			d.makeMachines([]*variant{{}, list[0], {}, {}}, 3)
		}()
	}
}
