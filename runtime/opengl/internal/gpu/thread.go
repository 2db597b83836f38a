//go:build cgo && linux && !android && !noopengl

package gpu

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/millrace-go/millrace/internal/osthread"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Context is a context of OpenGL as its thread needs it.
type Context interface {
	MakeCurrent() error // on the calling thread
	Current() bool      // on the calling thread
	Leave()             // ends the calling thread's use of it
	Destroy()           // called when no thread has it
}

// start makes c current on a new thread and runs first there.
func start(c Context, first func() error) (*osthread.Thread, error) {
	return osthread.Start(func() (err error) {
		defer func() {
			if r := recover(); r != nil { // a program's own functions make its context current
				err = panicked(r)
			}
		}()
		err = c.MakeCurrent()
		if err == nil {
			if err = first(); err == nil {
				return nil
			}
			c.Leave()
		}
		c.Destroy()
		return err
	}, func() { c.Leave(); c.Destroy() })
}

// do runs f on the device's thread and waits for it.
func (d *Device) do(f func() error) error {
	answer := make(chan error, 1)
	if !d.thread.Post(func() { answer <- d.guarded(f) }) {
		return gpurun.ErrClosed
	}
	return <-answer
}

// post queues f for the device's thread. Errors that it causes make the device lost.
func (d *Device) post(f func()) error {
	ok := d.thread.Post(func() {
		if err := d.guarded(func() error { f(); return nil }); err != nil {
			d.Lose(err)
		}
	})
	if !ok {
		return gpurun.ErrClosed
	}
	return nil
}

// guarded runs f unless the device is lost, and checks OpenGL's errors. A panic makes the device
// lost: the thread continues, and no caller waits for ever.
func (d *Device) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			d.Lose(panicked(r))
			err = d.lostError()
		}
	}()
	if !d.ctx.Current() {
		d.Lose(errors.New("the context is no longer current on the device's thread"))
	}
	if err := d.lostError(); err != nil {
		return err
	}
	err = f()
	if e := d.reported(); e != nil {
		err = e
	}
	return err
}

func panicked(r any) error {
	return fmt.Errorf("panic on the device's thread: %v\n%s", r, debug.Stack())
}
