//go:build cgo && linux && !android

package gpu

import (
	"fmt"
	goruntime "runtime"
	"sync"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Context is what a thread needs to have one.
type Context interface {
	MakeCurrent() error // on the calling thread
	Current() bool      // on the calling thread
	Leave()             // ends what the calling thread has with it
	Destroy()           // once no thread has it
}

// thread runs functions one after another where a context is current.
type thread struct {
	ctx Context

	mu     sync.Mutex
	more   *sync.Cond
	queue  []func()
	ending bool
	done   chan struct{}
}

// start makes ctx current on a thread of its own and runs first there.
func start(ctx Context, first func() error) (*thread, error) {
	t := &thread{ctx: ctx, done: make(chan struct{})}
	t.more = sync.NewCond(&t.mu)
	begun := make(chan error, 1)
	go func() {
		defer close(t.done)
		defer ctx.Destroy()
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		err := ctx.MakeCurrent()
		if err == nil {
			defer ctx.Leave()
			err = first()
		}
		begun <- err
		if err == nil {
			t.serve()
		}
	}()
	err := <-begun
	if err != nil {
		<-t.done
	}
	return t, err
}

// serve runs what is queued until the thread is told to end and nothing is left.
func (t *thread) serve() {
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

// post queues a function; false where the thread is ending.
func (t *thread) post(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return false
	}
	t.queue = append(t.queue, f)
	t.more.Signal()
	return true
}

// end lets the thread do what is queued, and waits for it.
func (t *thread) end() {
	t.mu.Lock()
	t.ending = true
	t.more.Signal()
	t.mu.Unlock()
	<-t.done
}

// Do runs f on the device's thread, behind what is queued.
func (d *Device) Do(f func()) error { return d.do(func() error { f(); return nil }) }

// do runs f on the device's thread and waits for it; the error is f's or what made
// the device unusable.
func (d *Device) do(f func() error) error {
	answer := make(chan error, 1)
	if !d.thread.post(func() { answer <- d.guarded(f) }) {
		return gpurun.ErrClosed
	}
	return <-answer
}

// post runs f on the device's thread some time. An error makes the device lost.
func (d *Device) post(f func() error) error {
	ok := d.thread.post(func() {
		if err := d.guarded(f); err != nil {
			d.lose(err)
		}
	})
	if !ok {
		return gpurun.ErrClosed
	}
	return nil
}

// guarded runs f unless the device is lost, and looks at what OpenGL reports.
func (d *Device) guarded(f func() error) error {
	if err := d.lostError(); err != nil {
		return err
	}
	if !d.thread.ctx.Current() {
		d.lose(fmt.Errorf("the context is no longer current on the device's thread"))
		return d.lostError()
	}
	err := f()
	if e := d.reported(); e != nil {
		err = e
	}
	return err
}
