package osthread

import (
	"runtime"
	"sync"
)

// Thread is a dedicated thread. Its queue is unbounded: posting never waits.
type Thread struct {
	mu     sync.Mutex
	more   *sync.Cond
	queue  []func()
	ending bool
	done   chan struct{}
}

// Start starts a thread, which first runs begin. If that fails, the thread has ended when Start
// returns the error; otherwise end is the last function that it runs.
func Start(begin func() error, end func()) (*Thread, error) {
	t := &Thread{done: make(chan struct{})}
	t.more = sync.NewCond(&t.mu)
	begun := make(chan error, 1)
	go func() {
		defer close(t.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := begin()
		begun <- err
		if err == nil {
			t.serve()
			end()
		}
	}()
	if err := <-begun; err != nil {
		<-t.done
		return nil, err
	}
	return t, nil
}

// serve runs queued functions until the thread must end and none is left.
func (t *Thread) serve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.queue) == 0 {
			if t.ending {
				return
			}
			t.more.Wait()
		}
		list := t.queue
		t.queue = nil
		t.mu.Unlock()
		for _, f := range list {
			f()
		}
		t.mu.Lock()
	}
}

// Post queues a function, and reports whether it will run: it will not after End.
func (t *Thread) Post(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return false
	}
	t.queue = append(t.queue, f)
	t.more.Signal()
	return true
}

// End lets the thread run its queue, and waits until the thread has ended.
func (t *Thread) End() {
	t.mu.Lock()
	t.ending = true
	t.more.Signal()
	t.mu.Unlock()
	<-t.done
}
