package stream

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
)

// The hook is told of every step, of tunings from the disk, and of choices that are replaced.
func TestTuneIsTraced(t *testing.T) {
	dir := t.TempDir()
	var steps []string
	var kernels []string
	start := func() (*tunable, *env) {
		steps, kernels = nil, nil
		dev := &tunable{takes: ways(10, 5, 7, 1), wrong: 3}
		return dev, openTunable(t, dev, func(o *device.Options) {
			cached(dir)(o)
			o.Trace = &device.Trace{Tune: func(e device.TuneEvent) {
				kernels = append(kernels, e.Kernel)
				if step := fmt.Sprint(e.Step, " ", e.Candidate, " ", e.Known); e.Step != "timed" {
					steps = append(steps, step)
				} else if e.Elapsed == 0 || e.Runs == 0 {
					t.Errorf("%+v", e)
				}
				if (e.Step == "refused") != (e.Err != nil) {
					t.Errorf("%+v", e)
				}
			}}
		})
	}
	dev, e := start()
	halves(e, 5)
	want := []string{"checked way 0 false", "checked way 1 false", "checked way 2 false", "refused way 3 false", "chosen way 1 false"}
	if !slices.Equal(steps, want) {
		t.Errorf("told of %q", steps)
	}
	ent, _ := onlyGeometry(t, e.d)
	if kernel := fmt.Sprintf("%016x", ent.Progs[0].Kernel().Key()); len(kernels) < 30 || slices.ContainsFunc(kernels, func(k string) bool { return k != kernel }) {
		t.Errorf("%d events of %v", len(kernels), kernels)
	}
	e.d.Close()
	dev, e = start()
	halves(e, 5)
	dev.broken = 1
	halves(e, 5)
	if want := []string{"chosen way 1 true", "chosen way 2 false"}; !slices.Equal(steps, want) {
		t.Errorf("then of %q", steps)
	}
}
