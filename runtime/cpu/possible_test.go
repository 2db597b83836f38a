//go:build cgo && unix

package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// TestPossible: a choice whose code is still to be made is possible, one whose
// code cannot be made is not, and that is known by the change that it makes.
func TestPossible(t *testing.T) {
	needCompiler(t)
	defer fault.Reset()
	d, _ := faulty(t, runtime.Config{Threads: 1})
	k := scaled(t)
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{600000}, 1, kerneltest.Dense)
	want := reference(t, k, h)
	bound(t, d, k, h, func(l *runtime.Launch) {
		unit := []runtime.Launch{*l}
		run := func(what string, c choice, possible bool) {
			t.Helper()
			unit[0].Choice = uint64(c)
			if err := d.Run(unit); err != nil {
				t.Fatal(err)
			}
			if err := d.Wait(true); err != nil {
				t.Fatal(err)
			}
			compare(t, what, k, contents(t, d, k, h, &unit[0]), want)
			if d.Possible(unit) != possible {
				t.Errorf("%s: possible is %v", what, !possible)
			}
		}
		run("default", 0, true)
		changes := d.Changes()
		for _, c := range []choice{turn(knobUnroll, 4), turn(knobThreads, 1)} {
			if unit[0].Choice = uint64(c); !d.Possible(unit) {
				t.Errorf("%v was not asked for so far and is not possible", c)
			}
		}
		fault.Set(fault.Compile, -1)
		run("no code", turn(knobUnroll, 4), false)
		if d.Changes() == changes {
			t.Error("a failed compile is no change")
		}
		run("no code of its own", turn(knobThreads, 1), true)
		fault.Reset()
		run("code", turn(knobUnroll, 2), true)
		if s := d.Stats(); s.Compiles != 2 || s.CompileFails != 1 {
			t.Errorf("%+v", s)
		}
	})
}
