package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/runtime"
)

// provisional runs a launch of a plan that will be replaced.
func provisional(t *testing.T, d *device, k *codegen.Kernel, points int64, copies bool) {
	t.Helper()
	h := kernels.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{points}, 1, kernels.Dense)
	bound(t, d, k, h, func(l *runtime.Launch) {
		l.Provisional, l.Copies = true, copies
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLargeProvisionalLaunchHasCode checks the first launch of a plan that will be replaced: it
// gets code if it does more work than making code takes, and is interpreted otherwise.
func TestLargeProvisionalLaunchHasCode(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 2})
	if !d.machine {
		t.Skip("no machine code here")
	}
	k := scaled(t)
	hold(t, d, k)
	launch := func(points int64, copies bool) (interpreted, made int64) {
		t.Helper()
		before := d.Stats()
		provisional(t, d, k, points, copies)
		s := d.Stats()
		if got := s.Tier0 - before.Tier0; (s.Tier0Points-before.Tier0Points != 0) != (got != 0 && !copies) {
			t.Errorf("%d launches interpreted, of %d points", got, s.Tier0Points-before.Tier0Points)
		}
		return s.Tier0 - before.Tier0, s.NativeKernels - before.NativeKernels
	}
	if interpreted, made := launch(codePoints/4, false); interpreted != 1 || made != 0 {
		t.Errorf("few points: %d launches interpreted, %d kernels made", interpreted, made)
	}
	if interpreted, made := launch(8*codePoints, true); interpreted != 1 || made != 0 {
		t.Errorf("a copy: %d launches interpreted, %d kernels made", interpreted, made)
	}
	if interpreted, made := launch(8*codePoints, false); interpreted != 0 || made != 1 {
		t.Errorf("many points: %d launches interpreted, %d kernels made", interpreted, made)
	}
}

// TestManyProvisionalLaunchesHaveCode checks that small launches of such a plan get code once they
// have done that much work together.
func TestManyProvisionalLaunchesHaveCode(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 2})
	if !d.machine {
		t.Skip("no machine code here")
	}
	k := scaled(t)
	hold(t, d, k)
	for range 8 {
		provisional(t, d, k, codePoints/4, false)
	}
	if s := d.Stats(); s.Tier0 == 0 || s.Tier0 > 4 || s.NativeKernels != 1 {
		t.Errorf("%d of 8 launches interpreted, %d kernels made", s.Tier0, s.NativeKernels)
	}
}
