package dist

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/millrace-go/millrace/internal/nap"
)

const (
	spin     = 20 * time.Microsecond  // of polling without a pause after something happened
	atWork   = 3 * time.Microsecond   // a longer poll has moved bytes: an empty one takes a tenth of this
	shortNap = 20 * time.Microsecond  // between polls after that,
	longNap  = 200 * time.Microsecond // twice as long each time up to this
	idleNap  = 10 * time.Millisecond  // while nothing is pending, for notes,
	longIdle = 40 * time.Millisecond  // twice as long each time up to this
)

// loop owns the driver: one goroutine on a thread of its own calls all its methods.
type loop struct {
	w        *World
	drv      Driver
	requests chan func() // run by the goroutine
	ended    chan struct{}
	end      bool

	ops       []*op
	abandoned []*op // those pending when the World failed: the driver still has their memory
	told      bool  // the failure was noted to all
	asked     asked
}

// op is a driver's operation that a goroutine waits for.
type op struct {
	begin func(Driver) (Pending, error)
	p     Pending
	done  chan struct{}
	ended chan struct{} // the loop's
	err   error
	since time.Time
	keep  any // memory that belongs to the driver
}

// start opens the driver on the loop's thread.
func (w *World) start(ctx context.Context, open func(context.Context) (Driver, error)) error {
	late := fmt.Errorf("the other ranks have not joined within %v", w.o.Deadline)
	ctx, cancel := context.WithTimeoutCause(ctx, w.o.Deadline, late)
	defer cancel()
	l := &loop{w: w, requests: make(chan func(), 64), ended: make(chan struct{})}
	w.loop = l
	opened := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(l.ended)
		drv, err := open(ctx)
		if err == nil {
			if w.info, err = checkInfo(drv.Info()); err != nil {
				err = errors.Join(err, drv.Close())
			}
		}
		select {
		case opened <- err:
			if err == nil {
				l.drv = drv
				l.run()
			}
		case <-ctx.Done(): // Open has returned
			if err == nil {
				drv.Close() // nobody is left to report an error to
			}
		}
	}()
	select {
	case err := <-opened:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func checkInfo(i Info) (Info, error) {
	if i.Size < 1 || i.Rank < 0 || i.Rank >= i.Size {
		return i, fmt.Errorf("the driver says that this is rank %d of %d", i.Rank, i.Size)
	}
	return i, nil
}

// run polls until the World is closed.
func (l *loop) run() {
	nap.Precise()
	busy, pause, rest := time.Now(), shortNap, idleNap
	for {
		asked := l.takeRequests()
		if l.end {
			return
		}
		begun := time.Now()
		some, err := l.drv.Poll()
		moved := len(l.ops) > 0 && time.Since(begun) > atWork
		if err != nil {
			l.w.fail(l.w.ownFault(err))
			for _, r := range l.w.others() {
				l.w.heardFrom(r) // no note will come
			}
		}
		for l.readNote() {
			some = true
		}
		l.settle()
		now := time.Now()
		l.watch(now)
		switch {
		case some || asked || moved:
			busy, pause, rest = now, shortNap, idleNap
		case len(l.ops) == 0:
			if l.idle(rest) {
				busy, pause, rest = time.Now(), shortNap, idleNap
			} else {
				rest = min(2*rest, longIdle)
			}
		case now.Sub(busy) > spin:
			nap.For(pause)
			pause = min(2*pause, longNap)
		}
	}
}

// takeRequests runs the functions that other goroutines have sent.
func (l *loop) takeRequests() (some bool) {
	for {
		select {
		case f := <-l.requests:
			f()
			some = true
		default:
			return some
		}
	}
}

// idle waits for a request, which it runs, or until notes are due.
func (l *loop) idle(rest time.Duration) (some bool) {
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case f := <-l.requests:
		f()
		return true
	case <-t.C:
		return false
	}
}

// settle ends operations that are done, and all of them if the World has failed.
func (l *loop) settle() {
	failure := l.w.Err()
	left := l.ops[:0]
	for _, o := range l.ops {
		done, err := o.p.Done()
		switch {
		case done && err != nil:
			failure = l.w.fail(l.w.ownFault(err))
			o.finish(failure)
		case done:
			o.finish(nil)
		default:
			left = append(left, o)
		}
	}
	clear(l.ops[len(left):])
	l.ops = left
	if failure == nil {
		return
	}
	for _, o := range l.ops {
		o.finish(failure)
	}
	l.abandoned = append(l.abandoned, l.ops...)
	l.ops = nil
	l.tell(failure)
}

func (o *op) finish(err error) {
	o.err = err
	close(o.done)
}

// request has the loop's goroutine run f. It reports false if the loop has ended.
func (l *loop) request(f func()) bool {
	select {
	case <-l.ended:
		return false
	default:
	}
	select {
	case l.requests <- f:
		return true
	case <-l.ended:
		return false
	}
}

// begin starts a driver's operation. keep is the memory that it uses.
func (l *loop) begin(keep any, begin func(Driver) (Pending, error)) *op {
	o := &op{begin: begin, done: make(chan struct{}), ended: l.ended, keep: keep}
	sent := l.request(func() {
		if err := l.w.Err(); err != nil {
			o.finish(err)
			return
		}
		p, err := begin(l.drv)
		if err != nil {
			o.finish(l.w.fail(l.w.ownFault(err)))
			return
		}
		o.p, o.since = p, time.Now()
		l.ops = append(l.ops, o)
	})
	if !sent {
		o.finish(ErrClosed)
	}
	return o
}

// wait returns an operation's error.
func (o *op) wait() error {
	select {
	case <-o.done:
		return o.err
	case <-o.ended:
	}
	select {
	case <-o.done:
		return o.err
	default:
		return ErrClosed // it was requested too late
	}
}

// stop ends the loop. last runs on its goroutine, as the last use of the driver. It returns false if
// that takes longer than most.
func (l *loop) stop(last func(Driver), most time.Duration) bool {
	l.request(func() {
		last(l.drv)
		l.end = true
	})
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-l.ended:
		return true
	case <-t.C:
		return false
	}
}
