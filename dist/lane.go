package dist

import (
	"context"
	"sync"
	"time"
)

// lane runs the calls of a World one after another, in the order in which they were posted. All
// ranks must post the same calls in the same order.
type lane struct {
	mu     sync.Mutex
	queue  []*call
	active bool // a goroutine runs the queue
	closed bool
	last   *call  // the last one posted
	room   []byte // of the call that runs; a failed World uses it no more, so it may stay the driver's
}

// call is a collective of the program.
type call struct {
	plan  plan
	ready chan struct{} // closed when fault and run are set; nil if they are
	fault error         // this rank cannot take part
	run   func() error  // exchanges bytes, after all ranks met; may be nil
	done  chan struct{}
	err   error
}

// post queues a call.
func (w *World) post(c *call) {
	c.done = make(chan struct{})
	l := &w.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.err = ErrClosed
		close(c.done)
		return
	}
	l.closed = c.plan.op == opClose
	l.last = c
	l.queue = append(l.queue, c)
	if !l.active {
		l.active = true
		go w.runLane()
	}
}

// runLane runs calls until none is left.
func (w *World) runLane() {
	l := &w.lane
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.active = false
			l.mu.Unlock()
			return
		}
		c := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		if c.ready != nil {
			<-c.ready
		}
		c.err = w.runCall(c)
		w.leave()
		close(c.done)
	}
}

func (w *World) runCall(c *call) error {
	if err := w.Err(); err != nil {
		return err
	}
	if err := w.meet(c.plan, c.fault); err != nil {
		return err
	}
	if c.run == nil {
		return nil
	}
	return c.run()
}

// do posts a call and waits for its end. When ctx is done first, the call goes on without the
// caller.
func (w *World) do(ctx context.Context, c *call) error {
	w.post(c)
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// complete posts a call and waits for its end.
func (w *World) complete(c *call) error {
	w.post(c)
	<-c.done
	return c.err
}

// enter begins a call, and returns its number.
func (w *World) enter(op string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = place{call: w.at.call + 1, name: op, waiting: true, since: time.Now()}
	return w.at.call
}

// onFile runs f, which reads or writes a file while other ranks wait.
func (w *World) onFile(f func()) {
	set := func(on bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at.onFile, w.at.since = on, time.Now()
	}
	set(true)
	f()
	set(false)
}

// leave ends a call.
func (w *World) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at.waiting, w.at.since = false, time.Now()
}

// where is where this rank is.
func (w *World) where() place {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}
