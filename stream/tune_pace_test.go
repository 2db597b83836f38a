package stream

import (
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
)

// beside runs f as a job of another stream.
func beside(e *env, f func()) {
	s := e.d.NewStream()
	s.mu.Lock()
	s.lane.Submit(&exec.Job{Alone: func() { f(); goruntime.KeepAlive(s) }}, true)
	s.mu.Unlock()
}

// neverPauses opens a device that is busy from its first trial until the test ends. It runs a
// segment often enough to start that trial.
func neverPauses(t *testing.T, mode device.TuneMode) (*env, *tunable) {
	dev := &tunable{takes: []time.Duration{200 * time.Microsecond, 100 * time.Microsecond}, begun: make(chan struct{})}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = mode })
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // before the device is closed
	dev.during = func() {
		running := make(chan struct{})
		beside(e, func() { close(running); <-release })
		<-running
	}
	for range autotune.After {
		halves(e, 5)
	}
	<-dev.begun
	return e, dev
}

// A program that never pauses is tuned too, within the share of time that tuning may take.
func TestTuneWithoutPauses(t *testing.T) {
	begin := time.Now()
	e, dev := neverPauses(t, device.TuneBackground)
	for deadline := time.Now().Add(time.Minute); e.d.Stats().Tunings == 0; time.Sleep(tms) {
		if time.Now().After(deadline) {
			t.Fatalf("not tuned after %d tries", dev.tries)
		}
	}
	// 30 rounds of two candidates, each run twice, take about 18 ms in total.
	const least = 15 * tms
	s, went := e.d.Stats(), time.Since(begin)
	if s.TuneTaken < int64(least) || went < time.Duration(float64(least)/autotune.Share) || s.Fallbacks != 0 {
		t.Errorf("%v taken of %v, %d fallbacks", time.Duration(s.TuneTaken), went, s.Fallbacks)
	}
}

// With TuneIdle, such a program is not tuned.
func TestTuneIdle(t *testing.T) {
	e, dev := neverPauses(t, device.TuneIdle)
	time.Sleep(20 * autotune.Quiet)
	dev.mu.Lock()
	defer dev.mu.Unlock()
	if dev.tries != 1 || e.d.Stats().TuneTaken != 0 {
		t.Errorf("%d tries, %d ns taken", dev.tries, e.d.Stats().TuneTaken)
	}
}

// For any length of steps and any times of request, the time taken is at most the share of the
// elapsed time plus one step, and the time taken in one stretch is bounded. The share can be
// used.
func TestRation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, longest := range []time.Duration{50 * time.Microsecond, 10 * tms, 4 * autotune.MaxSaved} {
		r := autotune.Ration{Share: autotune.Share}
		start := time.Unix(1000, 0)
		now, taken, soFar := start, time.Duration(0), time.Duration(0)
		r.Earn(now)
		var recent []time.Duration // the stretches
		for now.Sub(start) < 20*time.Minute {
			wait := time.Duration(rng.Int64N(int64(20 * tms)))
			if rng.IntN(20000) == 0 {
				wait = time.Minute // a long time without a request
			}
			now = now.Add(wait)
			r.Earn(now)
			stretch := time.Duration(0)
			for r.Affords(soFar) {
				step := time.Duration(1 + rng.Int64N(int64(longest)))
				r.Saved -= step
				taken, stretch, soFar = taken+step, stretch+step, max(soFar, step)
			}
			recent = append(recent, stretch)
			if went := now.Sub(start); taken > time.Duration(autotune.Share*float64(went))+longest {
				t.Fatalf("%v of %v taken", taken, went)
			}
		}
		if most := slices.Max(recent); most > autotune.MaxSaved+longest {
			t.Errorf("%v at a stretch", most)
		}
		if went := now.Sub(start); taken < went/100 {
			t.Errorf("steps up to %v: %v of %v taken", longest, taken, went)
		}
	}
	var none autotune.Ration
	none.Earn(time.Unix(1000, 0))
	none.Earn(time.Unix(5000, 0))
	if none.Affords(0) {
		t.Error("no share affords something")
	}
}

// In the background, time in which a trial waits for a compiler or for the program does not count
// as time taken. With TuneWait it does count, because the program waits for the trial.
func TestTuneCountsWhatItTakes(t *testing.T) {
	for mode, waits := range map[device.TuneMode]bool{device.TuneBackground: false, device.TuneWait: true} {
		dev := &tunable{takes: []time.Duration{tms / 1000, tms / 1000}}
		dev.during = func() { time.Sleep(time.Second) }
		e := openTunable(t, dev, func(o *device.Options) { o.Tune = mode })
		for range autotune.After {
			halves(e, 5)
		}
		if err := e.d.Wait(); err != nil {
			t.Fatal(err)
		}
		if spent := time.Duration(e.d.Stats().TuneNanos); spent == 0 || (spent >= time.Second) != waits {
			t.Errorf("mode %v: %v spent", mode, spent)
		}
	}
}
