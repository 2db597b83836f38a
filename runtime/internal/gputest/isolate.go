//go:build unix

package gputest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpuchild"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// isolated are the suites for devices in other processes: those of the Device's calls, and
// programs. MILLRACE_LONG runs all suites.
var isolated = []string{
	"Copy", "Scalars", "BeyondOneBinding", "Transfers", "Concurrent", "IndexFaults", "Dot", "Closed", "Lost", "LaunchError", "AdapterChoice",
	"Prepared", "EngineEager", "EngineEagerFaults", "EngineEagerSteady", "EngineRecorded", "EngineRecordedFaults", "EngineBoundSteps", "EngineRecordedSteps", "EngineFuses", "EngineChains", "EngineScatterOutOfRange", "EngineWarm", "EngineBundle", "EnginePrograms",
}

// Isolated runs suites on a device in another process, and faults that end that process.
// ServeFaults must have been called when the test binary was initialised.
func Isolated(t *testing.T, x Target) {
	here := x
	x.Open = func(adapter string) (gpurun.Device, error) { return gpuchild.Open(x.Name, adapter) }
	x.Options = "isolate=on"
	if g, err := x.Open(""); err != nil {
		Missing(t, x.Name, err)
	} else {
		g.Close()
	}
	if os.Getenv("MILLRACE_LONG") != "" {
		Run(t, x)
	} else {
		Some(t, x, isolated...)
	}
	for _, f := range apart {
		t.Run(f.name, func(t *testing.T) { f.run(t, here, x) })
	}
}

// apart are tests of a device x in another process, next to a device in this one.
var apart = []struct {
	name string
	run  func(t *testing.T, here, x Target)
}{
	{"DriverFaults", testDriverFaults},
	{"Killed", testKilled},
	{"KilledAnyTime", testKilledAnyTime},
}

// driverFault is a driver that ends its process in one of the Device's calls.
type driverFault struct {
	name string
	call func(gpurun.Device) gpurun.Device
	told string
}

type abortsInSubmit struct{ gpurun.Device }

func (abortsInSubmit) Submit([]gpurun.Dispatch, gpurun.Buffer, []byte) error {
	return die(syscall.SIGABRT)
}

type segfaultsInPipeline struct{ gpurun.Device }

func (segfaultsInPipeline) NewPipeline(string, []gpurun.Binding) (gpurun.Pipeline, error) {
	return nil, die(syscall.SIGSEGV)
}

type exitsInRead struct{ gpurun.Device }

func (exitsInRead) Read(gpurun.Buffer, int64, int64, func([]byte, int64)) error {
	os.Exit(7)
	return nil
}

var driverFaults = []driverFault{
	{"aborts", func(g gpurun.Device) gpurun.Device { return abortsInSubmit{g} }, "SIGABRT"},
	{"segfaults", func(g gpurun.Device) gpurun.Device { return segfaultsInPipeline{g} }, "SIGSEGV"},
	{"exits", func(g gpurun.Device) gpurun.Device { return exitsInRead{g} }, "exit status 7"},
}

func die(s syscall.Signal) error {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Signal(s)
	}
	time.Sleep(10 * time.Second)
	return errors.Join(errors.New("it lives"), err)
}

// ServeFaults makes this process the device of a test, if it was started as one.
func ServeFaults(x Target) {
	for _, f := range driverFaults {
		gpuchild.Serve(x.Name+" "+f.name, func(adapter string) (gpurun.Device, error) {
			g, err := x.Open(adapter)
			if err != nil {
				return nil, err
			}
			return f.call(g), nil
		})
	}
}

// testDriverFaults: the device is lost, others are not, and it can be opened again.
func testDriverFaults(t *testing.T, here, x Target) {
	for _, f := range driverFaults {
		t.Run(f.name, func(t *testing.T) { f.check(t, here, x) })
	}
}

func (f driverFault) check(t *testing.T, here, x Target) {
	under = here
	beside := openDevice(t, runtime.Config{})
	under = x
	other := openDevice(t, runtime.Config{})
	g, err := gpuchild.Open(x.Name+" "+f.name, "")
	must(t, err)
	d := gpurun.New(x.Name, g, x.Dialect, runtime.Config{})
	defer func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	k := newTrial(parse(t, copyKernel), 1, 100)
	k.fillInputs(rand.New(rand.NewPCG(1, 2)))
	l := k.launch(t, d)
	err = d.Run([]runtime.Launch{*l})
	if err == nil {
		err = d.Read(make([]byte, 4), ir.Float32, l.Args[1].Buf, 0)
	}
	if !errors.Is(err, runtime.ErrDeviceLost) || !strings.Contains(err.Error(), f.told) {
		t.Errorf("%v, want ErrDeviceLost with %q", err, f.told)
	}
	for name, call := range calls(t, d, l) {
		if err := call(); !errors.Is(err, runtime.ErrDeviceLost) {
			t.Errorf("%s: %v, want ErrDeviceLost", name, err)
		}
	}
	k.check(t, beside, ir.Tolerance{})
	k.check(t, other, ir.Tolerance{})
	k.check(t, openDevice(t, runtime.Config{}), ir.Tolerance{})
}

// children are the processes that this one started, if the system lists them.
func children(t *testing.T) (pids []int) {
	t.Helper()
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	if len(lists) == 0 {
		t.Skip("the system does not tell a process's children")
	}
	for _, l := range lists {
		data, _ := os.ReadFile(l) // a thread may have ended
		for _, f := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// openKillable opens an isolated device of the engine, and finds its process.
func openKillable(t *testing.T, x Target) (*millrace.Device, *os.Process) {
	t.Helper()
	before := children(t)
	d, err := millrace.Open(x.device("cache=off"))
	must(t, err)
	if !strings.Contains(d.Description(), "process of its own") {
		t.Errorf("described as %q", d.Description())
	}
	for _, pid := range children(t) {
		known := false
		for _, b := range before {
			known = known || b == pid
		}
		if !known {
			p, err := os.FindProcess(pid)
			must(t, err)
			return d, p
		}
	}
	t.Fatal("no process was started")
	return nil, nil
}

// busy gives a device much work, and reads the result.
func busy(d *millrace.Device) ([]float32, error) {
	a := millrace.UniformOn(d, millrace.Float32, 1, 256, 256)
	for range 200 {
		a = a.MatMul(a).Tanh()
	}
	return millrace.Values[float32](a.Sum())
}

// testKilled kills the driver while submitted work runs.
func testKilled(t *testing.T, here, x Target) {
	d, p := openKillable(t, x)
	beside, err := millrace.Open(here.device("cache=off"))
	must(t, err)
	defer beside.Close()
	cpu := openCPU(t, "cache=off")
	if _, err := busy(d); err != nil { // and compiles its kernels
		t.Fatal(err)
	}
	kept := millrace.FromSliceOn(d, []float32{1, 2, 3}).AddScalar(1)
	must(t, kept.Eval())
	failed := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = busy(d)
		}
		failed <- err
	}()
	time.Sleep(20 * time.Millisecond)
	must(t, p.Kill())
	if err := <-failed; !errors.Is(err, millrace.ErrDeviceLost) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v, want ErrDeviceLost: killed", err)
	}
	if _, err := millrace.Values[float32](kept); !errors.Is(err, millrace.ErrDeviceLost) {
		t.Errorf("what was there before: %v", err)
	}
	for range 2 {
		if _, err := millrace.Values[float32](millrace.FromSliceOn(d, []float32{1}).AddScalar(1)); !errors.Is(err, millrace.ErrDeviceLost) {
			t.Errorf("afterwards: %v", err)
		}
	}
	reopened, _ := openKillable(t, x)
	for _, d := range []*millrace.Device{cpu, beside, reopened} {
		v, err := millrace.Values[float32](millrace.FromSliceOn(d, []float32{1, 2, 3}).Square().AddScalar(1))
		if err != nil || fmt.Sprint(v) != "[2 5 10]" {
			t.Errorf("%s: %v, %v", d.Description(), v, err)
		}
	}
	_ = d.Close() // returns the unseen fault, if there is one
	if err := reopened.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, pid := range children(t) {
		if pid == p.Pid {
			t.Error("the process is still there")
		}
	}
}

// testKilledAnyTime kills the process at random moments, with several goroutines at work: each
// result is right or ErrDeviceLost.
func testKilledAnyTime(t *testing.T, _, x Target) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 8 {
		d, p := openKillable(t, x)
		after := time.AfterFunc(time.Duration(rng.IntN(60))*time.Millisecond, func() { _ = p.Kill() })
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				s := d.NewStream()
				for i := 0; ; i++ {
					n := 1 + i*worker*1000
					v, err := millrace.Values[float32](millrace.FullOn(s, millrace.Float32, 2, n).MulScalar(float64(i % 1000)).AddScalar(1))
					if errors.Is(err, millrace.ErrDeviceLost) {
						break
					}
					if err != nil || v[n-1] != float32(2*(i%1000)+1) {
						t.Errorf("%v, %v", err, v[n-1:])
						break
					}
				}
				_ = s.Close()
			})
		}
		wg.Wait()
		after.Stop()
		_ = d.Close()
	}
}
