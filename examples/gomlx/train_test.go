package main

import (
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/gomlxbackend"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

func fitted(t *testing.T, c config, backend string, each func(step int, b compute.Backend)) *history {
	t.Helper()
	c.report = 1 << 30
	h, err := fit(c, backend, io.Discard, each)
	if err != nil {
		t.Fatalf("%s: %v", backend, err)
	}
	return h
}

// Losses fall, and are those of the Go backend.
func TestSameLosses(t *testing.T) {
	for _, c := range []config{
		{model: "mlp", batch: 32, hidden: 32, steps: 80},
		{model: "cnn", batch: 8, hidden: 16, steps: 6},
		{model: "transformer", batch: 4, hidden: 128, steps: 12, layers: 2, context: 16},
	} {
		reference := "go"
		if c.model == "transformer" {
			reference = "go:ops_sequential" // the other way hangs
		}
		want, got := fitted(t, c, reference, nil), fitted(t, c, "millrace:cpu", nil)
		for i, w := range want.losses {
			if d := math.Abs(got.losses[i] - w); !(d <= 1e-3*(1+w)) {
				t.Errorf("%s: loss of step %d is %v, with the Go backend %v", c.model, i, got.losses[i], w)
			}
		}
		if first, last := got.losses[0], got.losses[c.steps-1]; c.model == "mlp" && !(last < first/2) {
			t.Errorf("%s: the loss is %v, and was %v", c.model, last, first)
		}
	}
}

// After the first steps nothing is held that was not held before: no memory, no
// plans; and nothing is recorded or explored.
func TestMemoryIsFlat(t *testing.T) {
	const warm, steps = 60, 400
	var before, after millrace.Stats
	fitted(t, config{model: "mlp", batch: 16, hidden: 32, steps: steps}, "millrace:cpu", func(step int, b compute.Backend) {
		dev := b.(*gomlxbackend.Backend).Device()
		switch step {
		case warm:
			if err := dev.Wait(); err != nil {
				t.Error(err)
			}
			before = dev.Stats()
		case steps - 1:
			// The collector releases some tensors, at its own time.
			for end := time.Now().Add(time.Minute); ; runtime.GC() {
				after = dev.Stats()
				if after.LiveBytes <= before.LiveBytes || time.Now().After(end) {
					break
				}
			}
		}
	})
	if after.LiveBytes > before.LiveBytes || after.PinnedBytes != before.PinnedBytes || before.LiveBytes == 0 {
		t.Errorf("%d bytes live, %d pinned after %d steps; %d and %d after %d", after.LiveBytes, after.PinnedBytes, steps,
			before.LiveBytes, before.PinnedBytes, warm)
	}
	if after.Plans != before.Plans || after.Explorations != before.Explorations {
		t.Errorf("%d plans, %d explorations after %d steps; %d and %d after %d", after.Plans, after.Explorations, steps, before.Plans, before.Explorations, warm)
	}
	perStep := (after.InPlace - before.InPlace) / (steps - 1 - warm)
	if perStep < 6 {
		t.Errorf("%d results a step in place; weights and moments should be", perStep)
	}
}

// A graph that is trained has both forms of a fused op, and computes one.
func TestFusedOpsAreFree(t *testing.T) {
	kernels := func() int64 {
		var before, after millrace.Stats
		fitted(t, config{model: "mlp", batch: 16, hidden: 32, steps: 20}, "millrace:cpu,compile=off,explore=wait", func(step int, b compute.Backend) {
			switch dev := b.(*gomlxbackend.Backend).Device(); step {
			case 9:
				before = dev.Stats()
			case 19:
				after = dev.Stats()
			}
		})
		return after.Ops - before.Ops
	}
	with := kernels()
	t.Setenv(graph.FusionEnv, "false")
	if without := kernels(); with != without || with == 0 {
		t.Errorf("%d ops with fused ones, %d without", with, without)
	}
}

func TestBadConfig(t *testing.T) {
	for want, c := range map[string]config{
		"cnn, mlp, transformer": {model: "rnn", batch: 1, hidden: 16, steps: 1, report: 1},
		"no heads of 32":        {model: "transformer", batch: 1, hidden: 100, steps: 1, report: 1, layers: 1, context: 9},
		"too few":               {model: "mlp", batch: 1, hidden: 16, steps: 0, report: 1},
	} {
		if err := run(c, []string{"go"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %q", c, err, want)
		}
	}
	if err := run(config{model: "mlp", batch: 1, hidden: 16, steps: 1, report: 1}, []string{"millrace:cpu+fast"}); err == nil {
		t.Error("a bad option is no error")
	}
}
