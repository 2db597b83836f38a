package gputest

import (
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// testEngineFlat: a program with ever new kernels takes no more memory after its 400th kernel than
// after its 200th: old plans are dropped with their GPU pipelines.
func testEngineFlat(t *testing.T) {
	testhook.SetPlans(16)
	d := openEngine(t)
	testhook.SetPlans(0)
	ops := [10]func(*millrace.Tensor) *millrace.Tensor{
		(*millrace.Tensor).Exp, (*millrace.Tensor).Sin, (*millrace.Tensor).Cos, (*millrace.Tensor).Tanh, (*millrace.Tensor).Neg,
		(*millrace.Tensor).Atan, (*millrace.Tensor).Sigmoid, (*millrace.Tensor).Abs, (*millrace.Tensor).Floor, (*millrace.Tensor).Sqrt,
	}
	run := func(from, to int) int {
		for i := from; i < to; i++ {
			x := millrace.FromSliceOn(d, []float32{1, 2, 3})
			y := ops[i%10](ops[i/10%10](ops[i/100%10](x)))
			if _, err := millrace.Values[float32](y); err != nil {
				t.Fatal(err)
			}
			y.Release()
			x.Release()
		}
		must(t, d.Wait())
		return residentBytes()
	}
	first := run(0, 200)
	last := run(200, 400)
	s := d.Stats()
	t.Logf("%d MiB resident, then %d; %d compiles", first>>20, last>>20, s.Runtime.Compiles)
	if s.Plans > 16 || s.Evictions < 380 {
		t.Errorf("%d plans are kept, %d were evicted", s.Plans, s.Evictions)
	}
	if last > first+first/10+16<<20 {
		t.Errorf("resident memory grew from %d to %d", first, last)
	}
}

// residentBytes is the process's memory after garbage collections, 0 where the system does not tell.
func residentBytes() (resident int) {
	for range 3 {
		goruntime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	text, _ := os.ReadFile("/proc/self/statm")
	if words := strings.Fields(string(text)); len(words) > 1 {
		resident, _ = strconv.Atoi(words[1])
	}
	return resident * os.Getpagesize()
}

// testManyRuns: memory, heap and goroutines do not grow with the number of runs, prepared or not, with
// buffers that stay and others that change. MILLRACE_LONG makes it 100,000 runs.
func testManyRuns(t *testing.T) {
	runs := 2000
	if os.Getenv("MILLRACE_LONG") != "" {
		runs = 100_000
	}
	d := openDevice(t, runtime.Config{})
	x := newTrial(parse(t, "in 0 : int32\nin 1 : int32\nout 2 : int32\n%0 = load 0 : int32\n%1 = load 1 : int32\n%2 = add %0 %1 : int32\nstore 2 %2"), 1, 1000)
	x.fillInputs(rand.New(rand.NewPCG(1, 6)))
	l := x.launch(t, d)
	list := []runtime.Launch{*l, *l}
	must(t, d.Run(list))
	p := d.Prepare(list, nil)
	if p != nil {
		defer p.Close()
	}
	out := []runtime.Place{{Launch: 0, Arg: 2}, {Launch: 1, Arg: 2}}
	type state struct{ resident, heap, goroutines int }
	some := func(n int) state {
		for i := range n {
			switch {
			case p == nil || i%4 == 0:
				must(t, d.Run(list))
			case i%4 == 1: // memory that comes from the pool, and goes back
				b, err := d.Alloc(int64(4000 + i%64*256))
				must(t, err)
				if !p.Set(out, b) {
					t.Fatal("a buffer was refused")
				}
				must(t, p.Run())
				d.Free(b)
				p.Set(out, l.Args[2].Buf)
			default:
				must(t, p.Run())
			}
			if i%64 == 0 {
				x.compare(t, d, l, ir.Tolerance{})
			}
		}
		must(t, d.Wait(false))
		s := state{resident: residentBytes()}
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		s.heap, s.goroutines = int(m.HeapAlloc), goruntime.NumGoroutine()
		return s
	}
	first := some(runs / 10)
	last := some(runs - runs/10)
	t.Logf("after %d runs %+v, after %d %+v", runs/10, first, runs, last)
	if last.resident > first.resident+8<<20 || last.heap > first.heap+1<<20 || last.goroutines > first.goroutines {
		t.Errorf("after %d runs %+v, after %d %+v", runs/10, first, runs, last)
	}
}
