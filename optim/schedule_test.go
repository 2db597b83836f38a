package optim

import (
	"math"
	"testing"
)

// TestSchedules compares schedules with PyTorch's numbers.
func TestSchedules(t *testing.T) {
	var ref map[string][]float64
	readJSON(t, "testdata/schedules.json", &ref)
	ours := map[string]Rate{
		"constant":        Constant(0.5),
		"step":            StepDecay(0.5, 7, 0.5),
		"multistep":       MultiStep(0.5, 0.1, 3, 11, 12),
		"exponential":     Exponential(0.5, 0.9),
		"linear":          Linear(0.125, 0.375, 8),
		"cosine":          CosineTo(0.5, 0.01, 30),
		"restarts":        CosineRestarts(0.5, 0.01, 4, 2),
		"restarts same":   CosineRestarts(0.5, 0, 5, 1),
		"warmup cosine":   Warmup(6, 0.1, Cosine(0.5, 24)),
		"onecycle":        OneCycle(0.5, 30),
		"onecycle linear": Cycle{Max: 0.5, Steps: 30, Linear: true, Rise: 0.25, Div: 10, FinalDiv: 100}.Rate(),
		"onecycle three":  Cycle{Max: 0.5, Steps: 30, ThreePhase: true}.Rate(),
	}
	if len(ours) != len(ref) {
		t.Errorf("%d schedules, and PyTorch's numbers of %d", len(ours), len(ref))
	}
	for name, want := range ref {
		for step := range want {
			if got := ours[name](step); math.Abs(got-want[step]) > 1e-12*want[step] {
				t.Errorf("%s: %v at step %d, want %v", name, got, step, want[step])
			}
		}
	}
}

// TestScheduleEnds: after its end a schedule stays constant, and it is a number at every step.
func TestScheduleEnds(t *testing.T) {
	for name, c := range map[string]struct {
		rate Rate
		want float64
	}{
		"cosine":      {CosineTo(1, 0.25, 10), 0.25},
		"linear":      {Linear(1, 0.5, 10), 0.5},
		"no steps":    {Linear(1, 0.5, 0), 0.5},
		"cosine of 0": {CosineTo(1, 0.25, 0), 0.25},
		"cycle":       {OneCycle(1, 10), 1.0 / 25 / 1e4},
		"no warm-up":  {Warmup(0, 0.1, Constant(2)), 2},
		"then":        {Constant(1).Then(3, Constant(4)), 4},
		"times":       {Constant(3).Times(StepDecay(1, 10, 0.5)), 3 * math.Pow(0.5, 100)},
	} {
		if got := c.rate(1000); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for step := range 12 {
			if got := c.rate(step); math.IsNaN(got) || math.IsInf(got, 0) {
				t.Errorf("%s: %v at step %d", name, got, step)
			}
		}
	}
	if got := Warmup(4, 0, Constant(1))(0); got != 0 {
		t.Errorf("a warm-up from nothing begins with %v", got)
	}
}
