package autotune

import (
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
)

const (
	// Quiet is how long nothing must have run before the device counts as idle.
	Quiet = 20 * time.Millisecond
	// Share is the part of its time that a program which never pauses gives to tuning. MaxSaved is
	// the most time that can be saved up, so a program is never held up for longer at once.
	Share    = 1.0 / 20
	MaxSaved = 2 * Longest
	// tuneHold is how long a trial keeps its memory while it waits for the device to be idle. It
	// is also how long trials get no memory after the program lacked some.
	tuneHold = 250 * time.Millisecond
	// Patience is how long a trial waits in total for the runs of other streams, if a caller waits
	// for the trial.
	Patience = 200 * time.Millisecond
)

// Ration is the time that tuning may take from a program which never pauses: a share of the time
// that passes. The cost of a step is known only after the step, so the balance may become
// negative; the next step then waits. Only the tuner's goroutine uses a Ration.
type Ration struct {
	Share float64 // 0: tuning gets no time
	Saved time.Duration
	at    time.Time // the last time that Earn counted
}

// Earn adds the share of the time since the last call.
func (r *Ration) Earn(now time.Time) {
	if !r.at.IsZero() {
		r.Saved = min(r.Saved+time.Duration(r.Share*float64(now.Sub(r.at))), MaxSaved)
	}
	r.at = now
}

// Affords reports that the saved time covers a step of that length.
func (r *Ration) Affords(step time.Duration) bool {
	return r.Share > 0 && r.Saved > 0 && r.Saved >= min(step, MaxSaved)
}

// lacks returns the time until the ration affords the step.
func (r *Ration) lacks(step time.Duration) time.Duration {
	return time.Duration(float64(min(step, MaxSaved)-r.Saved) / r.Share)
}

// pace returns when a step of a trial may run: when the device has been idle for a while, or when
// the ration covers the step; then rationed is true. If a caller waits for the tuner, pace returns
// when nothing runs, or after Patience; timings of a disturbed trial are not saved. A trial that
// waits long for an idle device gives its memory back.
func (x *Tuner) pace(t *Trial) (rationed bool, err error) {
	nap := 2 * time.Millisecond
	begin := time.Now()
	for {
		if x.ended.Load() {
			return false, ErrStopped
		}
		seq, busy := x.lanes.Last()
		if x.Opts.Tune == device.TuneWait || x.waiting.Load() > 0 {
			if waited := t.patience + time.Since(begin); !busy || waited > Patience {
				t.patience, t.disturbed = waited, t.disturbed || busy
				return false, nil
			}
		} else {
			now := time.Now()
			x.ration.Earn(now)
			if busy || seq != x.seen || x.since.IsZero() {
				x.seen, x.since = seq, now
			} else if now.Sub(x.since) >= Quiet && x.calm() {
				return false, nil
			}
			if x.ration.Affords(t.longest) && x.calm() {
				return true, nil
			}
			if x.ration.Share > 0 {
				nap = min(nap, max(x.ration.lacks(t.longest), time.Millisecond))
			} else if time.Since(begin) > tuneHold {
				x.giveBack(t)
			}
		}
		select {
		case <-x.wake:
		case <-time.After(nap):
		}
		nap = min(2*nap, Quiet)
	}
}

// Wait returns when nothing is queued or timed.
func (x *Tuner) Wait() {
	x.waiting.Add(1)
	defer x.waiting.Add(-1)
	x.hurry()
	x.Join()
}

// End stops the tuner. The step in progress goes on; Join waits for it.
func (x *Tuner) End() {
	x.ended.Store(true)
	x.hurry()
}

// Join returns when the tuner's goroutine has ended.
func (x *Tuner) Join() {
	x.Mu.Lock()
	for x.Running {
		x.idle.Wait()
	}
	x.Mu.Unlock()
}

func (x *Tuner) hurry() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}
