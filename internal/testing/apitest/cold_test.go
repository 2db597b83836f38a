//go:build cgo && unix

package apitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// branches is a segment whose best plan takes some time to find: rows of several kinds with ops on
// their results, all of them read.
func branches(x *millrace.Tensor) *millrace.Tensor {
	sum := x
	for i := range 4 {
		y := x.MulScalar(float64(i + 1)).Tanh()
		y = y.Sub(y.Mean(1).Unsqueeze(1)).Mul(sum).Softmax(i % 2)
		sum = sum.Add(y.Sum(0)).Mul(y.Max(1).Unsqueeze(1))
	}
	return sum
}

// TestColdStart: new code runs at once, by a greedy plan and in tier 0, while a compiler hangs. The
// better plan, compiled code and the fastest choice take over when they are ready, and only the
// time changes.
func TestColdStart(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	gate, script := filepath.Join(dir, "gate"), filepath.Join(dir, "cc")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile [ ! -e "+gate+" ]; do sleep 0.01; done; exec "+cc+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", script)
	var mu sync.Mutex
	var plans, chosen []string
	dev := open(t, millrace.Options{Threads: 2, Compile: millrace.CompileC, Cache: "off", TuneBudget: 200 * time.Millisecond, Trace: &millrace.Trace{
		Explore: func(e millrace.ExploreEvent) {
			mu.Lock()
			defer mu.Unlock()
			plan := e.Plan
			if e.Background {
				plan += " in the background"
			}
			plans = append(plans, plan)
		},
		Tune: func(e millrace.TuneEvent) {
			mu.Lock()
			defer mu.Unlock()
			if e.Step == "chosen" {
				chosen = append(chosen, e.Candidate)
			}
		},
	}})
	data := make([]float32, 64*512)
	for i := range data {
		data[i] = float32(i%1000)/500 - 1
	}
	run := func() []float32 {
		t.Helper()
		x := millrace.FromSliceOn(dev, data, 64, 512)
		got, err := millrace.Values[float32](branches(x))
		if err != nil {
			t.Fatal(err)
		}
		product, err := millrace.Values[float32](x.MatMul(x.Reshape(512, 64))) // there are several ways to run it
		if err != nil {
			t.Fatal(err)
		}
		return append(got, product...)
	}
	first := run()
	s := dev.Stats()
	mu.Lock()
	if len(plans) == 0 || plans[0] != "greedy" || s.Runtime.Compiles != 0 || s.Runtime.Tier0 == 0 || s.Tunings != 0 {
		t.Errorf("at first: plans %q, %d compiles, %d launches in tier 0, %d tunings", plans, s.Runtime.Compiles, s.Runtime.Tier0, s.Tunings)
	}
	mu.Unlock()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the plan, then its code, then the choices of code
		for range 8 {
			if again := run(); !slices.Equal(again, first) {
				t.Fatal("other results")
			}
		}
		if err := dev.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	before := dev.Stats()
	if again := run(); !slices.Equal(again, first) {
		t.Fatal("other results")
	}
	s = dev.Stats()
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(plans, "best in the background") || s.Searches == 0 || s.Fallbacks+s.Runtime.Fallbacks+s.Runtime.CompileFails != 0 {
		t.Errorf("plans %q, %d searches, %d and %d fallbacks", plans, s.Searches, s.Fallbacks, s.Runtime.Fallbacks)
	}
	if s.Runtime.Compiles == 0 || s.Runtime.Tier0 != before.Runtime.Tier0 {
		t.Errorf("%d compiles, and %d launches in tier 0 at last", s.Runtime.Compiles, s.Runtime.Tier0-before.Runtime.Tier0)
	}
	if s.Tunings == 0 || len(chosen) == 0 {
		t.Errorf("%d tunings, %q were chosen", s.Tunings, chosen)
	}
}
