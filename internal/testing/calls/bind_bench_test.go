package calls_test

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// TestBoundAllocs checks that a run of a bound recording allocates nothing.
func TestBoundAllocs(t *testing.T) {
	r := newTrainer(t)
	must(t, r.b.Run())
	if n := testing.AllocsPerRun(200, func() { must(t, r.b.Run()) }); n != 0 {
		t.Errorf("%v allocations in a run", n)
	}
	if n := testing.AllocsPerRun(200, func() { must(t, millrace.SetInput(r.b, 2, 0.25)) }); n != 0 {
		t.Errorf("%v allocations in a SetInput", n)
	}
}

func BenchmarkBoundRun(b *testing.B) {
	r := newTrainer(b)
	must(b, r.b.Run())
	b.ReportAllocs()
	for b.Loop() {
		if err := r.b.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	s := r.dev.Stats()
	b.ReportMetric(float64(s.BoundCalls)/float64(s.BoundRuns), "calls/run")
}
