package stream

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/plancache"
)

// What won alone is tried together, and what came of it outlives the process: the
// next one knows from the times of the parts what the combination is.
func TestTuneCombines(t *testing.T) {
	dir := t.TempDir()
	start := func() (*tunable, *env) {
		dev := &tunable{takes: ways(10, 8, 12, 7), together: 5 * tms}
		return dev, openTunable(t, dev, cached(dir))
	}
	dev, e := start()
	y := halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{pairs + 31}) {
		t.Errorf("ran by %v\n%s", ran, Explain(y))
	}
	if text := Explain(y); !strings.Contains(text, `has 5 variants and runs by "ways 3 and 1"`) {
		t.Error(text)
	}
	e.d.Close()
	dev, e = start()
	halves(e, 5)
	if s, ran := e.d.Stats(), dev.taken(); s.Tunings != 0 || s.Cache.Refused != 0 || !slices.Equal(ran, []uint64{pairs + 31}) {
		t.Errorf("then: %d tunings, ran by %v, %+v", s.Tunings, ran, s.Cache)
	}
	dev.broken = pairs + 31 // it gives way as others do
	halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{pairs + 31, 3}) {
		t.Errorf("at last by %v", ran)
	}
}

// A table whose combination is not that of its winners is none: whoever wrote it
// cannot have a device run by what it would not have tried.
func TestTuneRefusesOtherCombinations(t *testing.T) {
	dir := t.TempDir()
	run := func() Stats {
		e := openTunable(t, &tunable{takes: ways(10, 8, 12, 7), together: 5 * tms}, cached(dir))
		halves(e, 5)
		defer e.d.Close()
		return e.d.Stats()
	}
	run()
	files, err := filepath.Glob(filepath.Join(dir, "v1", "tuning-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	c, err := plancache.Open(dir, plancache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	entry, err := c.Read(filepath.Base(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	c.Put(kindTuning, entry.Key, []byte(strings.Replace(string(entry.Value), "ways 3 and 1", "ways 3 and 2", 1)))
	c.Close()
	if s := run(); s.Tunings != 1 || s.Cache.Refused != 1 {
		t.Errorf("%d tunings, %+v", s.Tunings, s.Cache)
	}
}

// The hook is told of every step, of what comes from disk, and of what gives way.
func TestTuneIsTraced(t *testing.T) {
	dir := t.TempDir()
	var steps []string
	var kernels []string
	start := func() (*tunable, *env) {
		steps, kernels = nil, nil
		dev := &tunable{takes: ways(10, 5, 7, 1), wrong: 3}
		return dev, openTunable(t, dev, func(o *Options) {
			cached(dir)(o)
			o.Trace = &Trace{Tune: func(e TuneEvent) {
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
	if kernel := fmt.Sprintf("%016x", ent.progs[0].Kernel().Key()); len(kernels) < 30 || slices.ContainsFunc(kernels, func(k string) bool { return k != kernel }) {
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

// Forced variants go through those that are combinations, too.
func TestForcedCombinations(t *testing.T) {
	dev := &tunable{takes: ways(10, 5, 20), together: 3 * tms}
	e := openTunable(t, dev, nil)
	defer force.SetVariant(-1)
	for k, want := range []uint64{0, 1, 2, 0, pairs + 11, pairs + 12, 0, pairs + 21, pairs + 22, 0} {
		force.SetVariant(k)
		halves(e, 5)
		if ran := dev.taken(); !slices.Equal(ran, []uint64{want}) {
			t.Errorf("variant %d: %v", k, ran)
		}
	}
}
