package apitest

import (
	"math"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
)

// A program that never runs the same kernel twice: old kernels are dropped, and the memory does not
// grow over time. The store of plans is full before the first measurement.

// flatOps are chosen by the digits of a number; five digits give 100,000 different kernels.
var flatOps = [10]func(*tensor) *tensor{
	(*tensor).Exp, (*tensor).Sin, (*tensor).Cos, (*tensor).Tanh, (*tensor).Erf,
	(*tensor).Atan, (*tensor).Sigmoid, (*tensor).Softplus, (*tensor).Floor, (*tensor).Sinh,
}

// flatKernels is the number of kernels.
const flatKernels = 100_000

// flatKernel runs one kernel.
func flatKernel(d *millrace.Device, number int) ([]float32, error) {
	x := millrace.FromSliceOn(d, []float32{-1.5, -0.25, 0, 0.5, 1, 3}, 6)
	y := x
	for range 5 {
		y = flatOps[number%10](y)
		number /= 10
	}
	v, err := millrace.Values[float32](y)
	y.Release()
	x.Release()
	return v, err
}

// footprint is the memory of a process.
type footprint struct {
	heap     int64 // bytes of Go's heap in use
	resident int64 // bytes of the process; 0 if unknown
	mappings int   // files and memory mapped into the process
	objects  int   // compiled kernels among them
	device   int64 // live bytes of the device
}

// holds measures the memory after garbage, and memory that depends on garbage, is freed.
func holds(d *millrace.Device) (f footprint) {
	for range 3 { // memory that depends on garbage is released a moment later
		goruntime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	f.heap, f.device = int64(m.HeapAlloc), d.Stats().Runtime.AllocBytes
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if words := strings.Fields(string(text)); len(words) > 1 {
			pages, _ := strconv.ParseInt(words[1], 10, 64)
			f.resident = pages * int64(os.Getpagesize())
		}
	}
	text, _ := os.ReadFile("/proc/self/maps")
	inodes := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f.mappings++
		if words := strings.Fields(line); len(words) > 5 && strings.Contains(words[5], "millrace-kernel") {
			inodes[words[4]] = true
		}
	}
	f.objects = len(inodes)
	return f
}

// flat reports growth between two measurements. Go's heap and C's allocator may fill some slack.
func (f footprint) flat(t *testing.T, from footprint) {
	t.Helper()
	grown := func(what string, was, is, room int64) {
		if is > was+room {
			t.Errorf("%s grew from %d to %d", what, was, is)
		}
	}
	grown("Go's heap", from.heap, f.heap, from.heap/10+1<<20)
	grown("resident memory", from.resident, f.resident, from.resident/10+16<<20)
	grown("the number of mappings", int64(from.mappings), int64(f.mappings), 40)
	grown("the number of compiled objects", int64(from.objects), int64(f.objects), 8)
	grown("the device's live memory", from.device, f.device, 4<<10)
}

// runFlat runs kernels with the numbers from, from+1 and so on.
func runFlat(t *testing.T, d *millrace.Device, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := flatKernel(d, i*7919%flatKernels); err != nil { // neighbours differ in all ops
			t.Fatalf("kernel %d: %v", i, err)
		}
	}
}

func TestFlat(t *testing.T) {
	steps := []int{6000, 8000, 10_000}
	if os.Getenv("MILLRACE_LONG") != "" {
		steps = []int{10_000, 20_000, 50_000, 100_000}
	}
	d := open(t, millrace.Options{Tier: millrace.TierInterpreter, Compile: millrace.CompileOff, Tune: millrace.TuneOff})
	want, err := flatKernel(d, 12345)
	if err != nil {
		t.Fatal(err)
	}
	var first, last footprint
	begin := time.Now()
	for i, n := range steps {
		runFlat(t, d, max(0, slices.Max(append(steps[:i:i], 0))), n)
		last = holds(d)
		t.Logf("%d kernels, %.1f s: heap %.1f MiB, resident %.1f MiB, %d mappings, device %d bytes", n, time.Since(begin).Seconds(),
			float64(last.heap)/(1<<20), float64(last.resident)/(1<<20), last.mappings, last.device)
		if i == 0 {
			first = last
		}
	}
	last.flat(t, first)
	again, err := flatKernel(d, 12345)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(again[i]) {
			t.Errorf("element %d is %v, it was %v", i, again[i], want[i])
		}
	}
}

// TestFlatCompiled is the same for kernels by a C compiler, with few plans kept.
func TestFlatCompiled(t *testing.T) {
	testhook.SetPlans(5)
	d := open(t, millrace.Options{Tier: millrace.TierCompiled, Compile: millrace.CompileC, Explore: millrace.ExploreWait, Tune: millrace.TuneOff})
	testhook.SetPlans(0)
	before := d.Stats().Runtime.Compiles
	runFlat(t, d, 0, 8)
	first := holds(d)
	runFlat(t, d, 8, 28)
	last := holds(d)
	last.flat(t, first)
	s := d.Stats()
	if n := s.Runtime.Compiles - before; builtWithCgo && n < 28 {
		t.Errorf("%d kernels were compiled", n)
	}
	if s.Plans > 5 || builtWithCgo && (last.objects == 0 || last.objects > 2*5) {
		t.Errorf("%d plans and %d objects are kept", s.Plans, last.objects)
	}
}
