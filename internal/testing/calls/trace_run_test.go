package calls_test

import (
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestTraceRun checks that a hook for runs alone gets all launches of plans, each once. They
// include those of bound recordings, which are a single call if there is no hook.
func TestTraceRun(t *testing.T) {
	var mu sync.Mutex
	kernels, timed := 0, 0
	d, err := millrace.OpenOptions(millrace.Options{Device: "cpu", Cache: "off", Trace: &millrace.Trace{Run: func(e millrace.RunEvent) {
		mu.Lock()
		defer mu.Unlock()
		kernels += e.Kernels
		timed += len(e.Launches)
	}}})
	must(t, err)
	defer d.Close()
	x := millrace.FromSliceOn(d, []float32{1, 2, 3}, 3)
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].Exp().AddScalar(1)}, nil
	})
	b, err := rec.Bind(x)
	must(t, err)
	defer b.Close()
	const runs = 50
	before := kernels
	for range runs {
		must(t, b.Run())
	}
	must(t, d.Wait())
	mu.Lock()
	defer mu.Unlock()
	if n := kernels - before; n < runs {
		t.Errorf("told of %d launches in %d runs", n, runs)
	}
	if s := d.Stats(); s.BoundCalls != 0 {
		t.Errorf("%d runs were one call, of which nobody heard", s.BoundCalls)
	}
	if timed == 0 || timed > kernels {
		t.Errorf("%d of %d launches by themselves", timed, kernels)
	}
}
