package gputest

import (
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/force"
)

// testEngineFlat: a program with ever new kernels takes no more memory after its 400th kernel than
// after its 200th: old plans are dropped with their GPU pipelines.
func testEngineFlat(t *testing.T) {
	force.SetPlans(16)
	d := openEngine(t)
	force.SetPlans(0)
	ops := [10]func(*millrace.Tensor) *millrace.Tensor{
		(*millrace.Tensor).Exp, (*millrace.Tensor).Sin, (*millrace.Tensor).Cos, (*millrace.Tensor).Tanh, (*millrace.Tensor).Neg,
		(*millrace.Tensor).Atan, (*millrace.Tensor).Sigmoid, (*millrace.Tensor).Abs, (*millrace.Tensor).Floor, (*millrace.Tensor).Sqrt,
	}
	run := func(from, to int) (resident int) {
		for i := from; i < to; i++ {
			x := millrace.FromSliceOn(d, []float32{1, 2, 3})
			y := ops[i%10](ops[i/10%10](ops[i/100%10](x)))
			if _, err := millrace.Values[float32](y); err != nil {
				t.Fatal(err)
			}
			y.Release()
			x.Release()
		}
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
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
