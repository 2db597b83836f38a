package autotune

import (
	"time"

	"github.com/millrace-go/millrace/device"
)

const (
	// Quiet is how long nothing must have run before the device counts as idle.
	Quiet = 20 * time.Millisecond
	// Share is the share of its time that a program which never pauses gives to
	// tuning, and tuneSaved how much of that is saved up at most: the program is never
	// held up for longer at a stretch.
	Share    = 1.0 / 20
	MaxSaved = 2 * Longest
	// tuneHold is how long a trial keeps its memory while it has to wait until the
	// device is idle, and how long it is without where the program lacked it.
	tuneHold = 250 * time.Millisecond
	// Patience is how long a trial in all waits for what other streams run, where
	// somebody waits for the trial.
	Patience = 200 * time.Millisecond
)

// Ration is the time that tuning may take from a program which never pauses: a
// share of what goes by. What a step took is known only behind it, so it may be
// owed, and is paid back before the next one. It is the tuner's goroutine's alone.
type Ration struct {
	Share float64 // 0: none
	Saved time.Duration
	at    time.Time // when it was counted last
}

// Earn counts the time that went by.
func (r *Ration) Earn(now time.Time) {
	if !r.at.IsZero() {
		r.Saved = min(r.Saved+time.Duration(r.Share*float64(now.Sub(r.at))), MaxSaved)
	}
	r.at = now
}

// Affords reports that a step of that length is covered.
func (r *Ration) Affords(step time.Duration) bool {
	return r.Share > 0 && r.Saved > 0 && r.Saved >= min(step, MaxSaved)
}

// lacks is how long it takes until it is.
func (r *Ration) lacks(step time.Duration) time.Duration {
	return time.Duration(float64(min(step, MaxSaved)-r.Saved) / r.Share)
}

// pace returns when a step of a trial may run: when nobody has used the device
// for a while, or when what the program gives to tuning covers the step, which is
// then rationed; where somebody waits for the tuner, when nothing runs right now, or
// after some patience: such timings are not kept. A trial that has to wait for long
// until the device is idle gives its memory back.
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
			if x.ration.Affords(t.dearest) && x.calm() {
				return true, nil
			}
			if x.ration.Share > 0 {
				nap = min(nap, max(x.ration.lacks(t.dearest), time.Millisecond))
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

// End lets nothing more be timed. What is being tried goes on: join waits for it.
func (x *Tuner) End() {
	x.ended.Store(true)
	x.hurry()
}

// Join returns when the tuner's goroutine has gone.
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
