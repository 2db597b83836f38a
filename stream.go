package millrace

import (
	"context"

	"github.com/millrace-go/millrace/stream"
)

// Stream is a sequence of ops on one device. It is safe for concurrent use, and the ops of one
// goroutine stay in order. If only one goroutine uses a stream, the order of all its ops is
// fixed, and so are the kernels that they become.
//
// An op's result belongs to the stream of the first operand that is not on the default stream,
// else to the default stream. A result of shared weights and a request's data therefore belongs
// to the request's stream. Operands may belong to any streams of the device.
type Stream struct {
	s *stream.Stream
}

// made reports that a device made s, so that s is neither nil nor the zero Stream.
func (s *Stream) made() bool { return s != nil && s.s != nil }

// Device returns the device that the stream is on. Calls may return different pointers for one
// device.
func (s *Stream) Device() *Device {
	if !s.made() {
		return nil
	}
	return &Device{s.s.Device()}
}

// Sync runs the recorded ops and waits until they are done, or until ctx is; ctx may be nil. It
// returns the first error of the stream that no reader, Err or Sync has returned yet.
func (s *Stream) Sync(ctx context.Context) error {
	if !s.made() {
		return errNilDevice
	}
	return s.s.Sync(ctx)
}

// Err returns the first error of the stream that no reader, Err or Sync has returned yet. It runs
// nothing.
func (s *Stream) Err() error {
	if !s.made() {
		return errNilDevice
	}
	return s.s.Err()
}

// Close runs the recorded ops and ends the stream. Recording to it is then ErrClosed; its tensors
// stay readable. The default stream is closed with its device.
func (s *Stream) Close() error {
	if !s.made() {
		return nil
	}
	return s.s.Close()
}
