package device

import (
	"context"
	"errors"

	"github.com/millrace-go/millrace/operror"
)

// Within calls f, which may wait for the device, and returns its error; or that of
// ctx as soon as ctx is done. Then f goes on by itself, and what it would have
// returned counts as an error that nobody has seen. A nil ctx is never done.
func (d *Base) Within(ctx context.Context, f func() error) error {
	if ctx == nil || ctx.Done() == nil {
		return f()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if r := recover(); r != nil { // of a hook: it is the caller's turn, or the next one's
				d.hookPanic.CompareAndSwap(nil, &r)
			}
			done <- err
		}()
		err = f()
	}()
	select {
	case err := <-done:
		d.Rethrow()
		return err
	case <-ctx.Done():
		go func() {
			var e *operror.Error
			if errors.As(<-done, &e) {
				operror.Unsee(e) // Err and Sync tell of it
			}
		}()
		return ctx.Err()
	}
}
