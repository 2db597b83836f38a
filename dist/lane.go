package dist

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lane orders the calls of a World: they run one after another, in the order in which they were
// posted. All ranks must post the same calls in the same order.
type lane struct {
	mu     sync.Mutex
	closed bool
	last   *call     // the last one posted
	room   [2][]byte // of the call that runs; a failed World uses them no more, so they may stay the driver's
}

// call is a collective of the program.
type call struct {
	plan  plan
	fault error           // this rank cannot take part
	run   func() error    // exchanges bytes, after all ranks met; may be nil
	after <-chan struct{} // the end of the call before; nil for the first
	done  chan struct{}
	err   error
	began bool // run was called
}

// post gives a call its place in the order. It does not wait. The caller must call perform then, on
// any goroutine, or later calls wait for ever: each call runs on the goroutine that waits for it.
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
	if l.last != nil {
		c.after = l.last.done
	}
	l.closed = c.plan.op == opClose
	l.last = c
}

// perform runs a posted call when the calls before it have ended.
func (w *World) perform(c *call) error {
	if c.err != nil {
		return c.err // it came after Close
	}
	if c.after != nil {
		<-c.after
	}
	ended := false
	defer func() {
		if !ended { // its goroutine turns the panic into an error, and the program goes on
			c.err = w.fail(w.ownFault(errors.New("a call panicked")))
		}
		w.leave()
		close(c.done)
	}()
	c.err = w.runCall(c)
	ended = true
	return c.err
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
	c.began = true
	return c.run()
}

// do posts a call and waits for its end. When ctx is done first, the call goes on without the
// caller.
func (w *World) do(ctx context.Context, c *call) error {
	if ctx.Done() == nil {
		return w.complete(c)
	}
	w.begin(c)
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin posts a call, which runs without its caller.
func (w *World) begin(c *call) {
	w.post(c)
	go w.perform(c)
}

// complete posts a call and runs it.
func (w *World) complete(c *call) error {
	w.post(c)
	return w.perform(c)
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
