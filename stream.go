package millrace

import (
	"context"

	"github.com/millrace-go/millrace/stream"
)

// Stream is a sequence of ops on one device. It is safe for concurrent use,
// and ops of one goroutine stay in order; with one goroutine per stream the
// order of all of them is fixed, and so are the kernels that they become.
//
// An op's result belongs to the first operand's stream that is not the default
// one, else to the default stream: what is computed from shared weights and a
// request's data goes to the request's stream. Operands of other streams of
// the device may be used at any time.
type Stream struct {
	s *stream.Stream
}

// made reports that a device made s: it is not nil and not the zero Stream.
func (s *Stream) made() bool { return s != nil && s.s != nil }

// Device that the stream is on. Calls may return different pointers for one
// device.
func (s *Stream) Device() *Device {
	if !s.made() {
		return nil
	}
	return &Device{s.s.Device()}
}

// Sync runs what was recorded and waits until it is done or ctx is, which may be
// nil. It returns the first error of the stream that nobody has seen yet: one is
// seen when reading a tensor, Err or Sync returned it.
func (s *Stream) Sync(ctx context.Context) error {
	if !s.made() {
		return errNilDevice
	}
	return s.s.Sync(ctx)
}

// Err returns the first error of the stream that nobody has seen yet, once,
// without running anything.
func (s *Stream) Err() error {
	if !s.made() {
		return errNilDevice
	}
	return s.s.Err()
}

// Close runs what was recorded and ends the stream; recording to it from then
// on is ErrClosed. Its tensors stay readable. The default stream is closed
// with its device.
func (s *Stream) Close() error {
	if !s.made() {
		return nil
	}
	return s.s.Close()
}
