package stream

import (
	"time"

	"github.com/millrace-go/millrace/autotune"
)

const (
	// tuneQuiet is how long nothing must have run before the device counts as idle.
	tuneQuiet = 20 * time.Millisecond
	// tuneShare is the share of its time that a program which never pauses gives to
	// tuning, and tuneSaved how much of that is saved up at most: the program is never
	// held up for longer at a stretch.
	tuneShare = 1.0 / 20
	tuneSaved = 2 * tuneLongest
	// tuneHold is how long a trial keeps its memory while it has to wait until the
	// device is idle, and how long it is without where the program lacked it.
	tuneHold = 250 * time.Millisecond
	// tunePatience is how long a trial in all waits for what other streams run, where
	// somebody waits for the trial.
	tunePatience = 200 * time.Millisecond
)

// ration is the time that tuning may take from a program which never pauses: a
// share of what goes by. What a step took is known only behind it, so it may be
// owed, and is paid back before the next one. It is the tuner's goroutine's alone.
type ration struct {
	share float64 // 0: none
	saved time.Duration
	at    time.Time // when it was counted last
}

// earn counts the time that went by.
func (r *ration) earn(now time.Time) {
	if !r.at.IsZero() {
		r.saved = min(r.saved+time.Duration(r.share*float64(now.Sub(r.at))), tuneSaved)
	}
	r.at = now
}

// affords reports that a step of that length is covered.
func (r *ration) affords(step time.Duration) bool {
	return r.share > 0 && r.saved > 0 && r.saved >= min(step, tuneSaved)
}

// lacks is how long it takes until it is.
func (r *ration) lacks(step time.Duration) time.Duration {
	return time.Duration(float64(min(step, tuneSaved)-r.saved) / r.share)
}

// pace returns when a step of a trial may run: when nobody has used the device
// for a while, or when what the program gives to tuning covers the step, which is
// then rationed; where somebody waits for the tuner, when nothing runs right now, or
// after some patience: such timings are not kept. A trial that has to wait for long
// until the device is idle gives its memory back.
func (x *tuner) pace(t *trial) (rationed bool, err error) {
	nap := 2 * time.Millisecond
	begin := time.Now()
	for {
		if x.ended.Load() {
			return false, autotune.ErrStopped
		}
		seq, busy := x.dev.exec.last()
		if x.dev.opts.Tune == TuneWait || x.waiting.Load() > 0 {
			if waited := t.patience + time.Since(begin); !busy || waited > tunePatience {
				t.patience, t.disturbed = waited, t.disturbed || busy
				return false, nil
			}
		} else {
			now := time.Now()
			x.ration.earn(now)
			if busy || seq != x.seen || x.since.IsZero() {
				x.seen, x.since = seq, now
			} else if now.Sub(x.since) >= tuneQuiet && x.calm() {
				return false, nil
			}
			if x.ration.affords(t.dearest) && x.calm() {
				return true, nil
			}
			if x.ration.share > 0 {
				nap = min(nap, max(x.ration.lacks(t.dearest), time.Millisecond))
			} else if time.Since(begin) > tuneHold {
				x.giveBack(t)
			}
		}
		select {
		case <-x.wake:
		case <-time.After(nap):
		}
		nap = min(2*nap, tuneQuiet)
	}
}

// wait returns when nothing is queued or timed.
func (x *tuner) wait() {
	x.waiting.Add(1)
	defer x.waiting.Add(-1)
	x.hurry()
	x.join()
}

// end lets nothing more be timed. What is being tried goes on: join waits for it.
func (x *tuner) end() {
	x.ended.Store(true)
	x.hurry()
}

// join returns when the tuner's goroutine has gone.
func (x *tuner) join() {
	x.mu.Lock()
	for x.running {
		x.idle.Wait()
	}
	x.mu.Unlock()
}

func (x *tuner) hurry() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}
