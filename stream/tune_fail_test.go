package stream

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/runtime"
)

// Possible is what the test says.
func (d *tunable) Possible(ls []runtime.Launch) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	return !slices.Contains(d.lost, ls[0].Choice)
}

// lose makes choices impossible from now on.
func (d *tunable) lose(choices ...uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = choices
	d.changes++
}

// A driver's broken invariant while its ways are asked for is found before anybody
// was given the memory that would have been written: it is an error that is told,
// and what was asked for is computed op by op.
func TestTuneAskedOfABrokenDriver(t *testing.T) {
	var told []error
	dev := &tunable{takes: ways(1, 2), breaks: "broken"}
	e := openTunable(t, dev, func(o *Options) { o.Trace = &Trace{Error: func(err error) { told = append(told, err) }} })
	halves(e, 5)
	var bug *InternalError
	if len(told) != 1 || !errors.As(told[0], &bug) || bug.Cause != "broken" || e.d.Stats().Fallbacks != 1 {
		t.Errorf("told of %v, %d fallbacks", told, e.d.Stats().Fallbacks)
	}
}

// A choice whose code could not be made gives way to the next one that has its,
// for good and for all sizes with these facts; each is counted and told once. As
// long as the device changes nothing it is not asked.
func TestTuneGivesUpWhatIsImpossible(t *testing.T) {
	dir := t.TempDir()
	var told []string
	start := func() (*tunable, *env) {
		dev := &tunable{takes: []time.Duration{10 * tms, 4 * tms, 5 * tms, 6 * tms, 7 * tms}}
		return dev, openTunable(t, dev, func(o *Options) {
			cached(dir)(o)
			o.Trace = &Trace{Error: func(err error) { told = append(told, err.Error()) }}
		})
	}
	dev, e := start()
	y := halves(e, 5)
	asked := dev.asked
	dev.lose(1, 2)
	for range 10 {
		halves(e, 5)
	}
	if ran := dev.taken(); !slices.Equal(ran, append([]uint64{1}, slices.Repeat([]uint64{3}, 10)...)) {
		t.Errorf("ran by %v", ran)
	}
	if n := e.d.Stats().Fallbacks; n != 2 || len(told) != 2 || !strings.Contains(told[0], "way 1") || !strings.Contains(told[1], "way 2") {
		t.Errorf("%d fallbacks, told of %q", n, told)
	}
	if dev.asked -= asked; dev.asked != 3 {
		t.Errorf("the device was asked %d times", dev.asked)
	}
	if text := Explain(y); !strings.Contains(text, `runs by "way 3"`) {
		t.Error(text)
	}
	dev.lose(1, 2, 3, 4)
	halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{0}) {
		t.Errorf("at last by %v", ran)
	}
	// What is impossible from the start is never run by.
	e.d.Close()
	told = nil
	dev, e = start()
	dev.lost = []uint64{1}
	halves(e, 5)
	halves(e, 5)
	if s, ran := e.d.Stats(), dev.taken(); s.Tunings != 0 || s.Fallbacks != 1 || len(told) != 1 || !slices.Equal(ran, []uint64{2, 2}) {
		t.Errorf("%d tunings, %d fallbacks, told of %q, run by %v", s.Tunings, s.Fallbacks, told, ran)
	}
}

// What could not be tried for want of something is tried by the process that has
// it, and by none that has not; nor by any after that.
func TestTuneTriesWhatWasLacking(t *testing.T) {
	var dir string
	var data []byte
	run := func(what string, lost []uint64, tunings int, way uint64, change func(*Options), source []byte) {
		t.Helper()
		var told []error
		dev := &tunable{takes: []time.Duration{10 * tms, 4 * tms, 7 * tms}, lost: lost}
		e := openTunable(t, dev, func(o *Options) {
			change(o)
			o.Trace = &Trace{Error: func(err error) { told = append(told, err) }}
		})
		if source != nil {
			use(t, e.d, source)
		}
		var y *Value
		for range 2 * tuneAfter {
			y = halves(e, 5)
			if err := e.d.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		if s, ran := e.d.Stats(), dev.taken(); s.Tunings != int64(tunings) || ran[len(ran)-1] != way || s.Fallbacks != 0 || len(told) != 0 {
			t.Errorf("%s: %d tunings, runs by %v, %d fallbacks, told of %v", what, s.Tunings, ran[len(ran)-1], s.Fallbacks, told)
		}
		if text := Explain(y); strings.Contains(text, "not tried: it cannot be tried here: no compiler") != (lost != nil) {
			t.Errorf("%s: %s", what, text)
		}
		if data == nil {
			data = exported(t, e.d)
		}
		e.d.Close()
	}
	for _, mode := range []TuneMode{TuneWait, TuneBackground} {
		data = nil
		dir = t.TempDir()
		there := func(o *Options) { cached(dir)(o); o.Tune = mode }
		run("lacking", []uint64{1}, 1, 2, there, nil)
		run("still lacking", []uint64{1}, 0, 2, there, nil)
		run("there", nil, 1, 1, there, nil)
		run("known", nil, 0, 1, there, nil)
		run("known, beside a bundle of what was lacking", nil, 0, 1, there, data)
		run("that bundle alone", nil, 1, 1, func(o *Options) { o.Tune = mode }, data)
	}
}
