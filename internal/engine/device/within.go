package device

import (
	"context"
	"errors"

	"github.com/millrace-go/millrace/internal/operror"
)

// Within calls f, which may wait for the device, and returns its error, or the error of ctx as soon
// as ctx is done. In the second case f continues in the background, and its error counts as unseen.
// A nil ctx is never done.
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
			if r := recover(); r != nil { // a panic of a hook: the caller, or the next call, continues it
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
				operror.Unsee(e) // Err and Sync report it
			}
		}()
		return ctx.Err()
	}
}
