package gomlxbackend

import (
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/handle"
	"github.com/pkg/errors"
)

// Buffer is a tensor on the backend's device. It is safe for concurrent use.
// Nothing changes its elements, so that buffers may share memory behind the
// scenes; a buffer that is dropped without Finalize is found by Go's collector.
type Buffer struct {
	backend *Backend
	shape   shapes.Shape
	t       atomic.Pointer[millrace.Tensor] // nil once finalised or donated
	im      *millrace.Tensor                // of complex elements: the imaginary parts, and t is the real ones; whoever takes t has taken it
}

var _ compute.Buffer = (*Buffer)(nil)

func (b *Backend) buffer(shape shapes.Shape, t, im *millrace.Tensor) *Buffer {
	buf := &Buffer{backend: b, shape: shape, im: im}
	buf.t.Store(t)
	return buf
}

// BufferFromFlatData copies elements to the device.
func (b *Backend) BufferFromFlatData(num compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	const what = "BufferFromFlatData"
	if err := b.usable(what, num, shape); err != nil {
		return nil, err
	}
	if err := checkFlat(flat, shape); err != nil {
		return nil, errors.WithMessage(err, what)
	}
	t, im, err := toDevice(b.dev, flat, shape)
	if err != nil {
		return nil, errors.WithMessagef(err, "%s of %s", what, shape)
	}
	return b.buffer(shape.Clone(), t, im), nil
}

// HasSharedBuffers is false: elements live in the device's memory.
func (b *Backend) HasSharedBuffers() bool { return false }

// NewSharedBuffer is an error: see HasSharedBuffers.
func (b *Backend) NewSharedBuffer(_ compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "NewSharedBuffer of %s: backend %q has no shared buffers", shape, Name)
}

// tensor is the tensor of a buffer that is still alive.
func (b *Buffer) tensor(what string) (*millrace.Tensor, error) {
	if b == nil {
		return nil, errors.Errorf("%s: the buffer is nil", what)
	}
	t := b.t.Load()
	if t == nil {
		return nil, errors.Errorf("%s of %s: the buffer was finalized or donated", what, b.shape)
	}
	return t, nil
}

// Backend is the backend that the buffer belongs to.
func (b *Buffer) Backend() compute.Backend { return b.backend }

// Finalize gives the memory back at once. Doing so twice is harmless.
func (b *Buffer) Finalize() error {
	if t := b.t.Swap(nil); t != nil {
		handle.Drop(t) // the buffer itself tells of a use after this
		if b.im != nil {
			handle.Drop(b.im)
		}
	}
	return nil
}

// Shape of the buffer.
func (b *Buffer) Shape() (shapes.Shape, error) {
	if _, err := b.tensor("Shape"); err != nil {
		return shapes.Invalid(), err
	}
	return b.shape, nil
}

// DeviceNum is 0.
func (b *Buffer) DeviceNum() (compute.DeviceNum, error) {
	_, err := b.tensor("DeviceNum")
	return 0, err
}

// ToFlatData copies the elements into a slice of as many of the dtype's Go type.
func (b *Buffer) ToFlatData(flat any) error {
	const what = "ToFlatData"
	t, err := b.tensor(what)
	if err != nil {
		return err
	}
	if err := checkFlat(flat, b.shape); err != nil {
		return errors.WithMessage(err, what)
	}
	if b.shape.Size() == 0 {
		return nil
	}
	if err := fromDevice(flat, b.shape.DType, t, b.im); err != nil {
		return errors.WithMessagef(err, "%s of %s", what, b.shape)
	}
	return nil
}

// Data is an error: see Backend.HasSharedBuffers.
func (b *Buffer) Data() (any, error) {
	return nil, errors.Wrapf(compute.ErrNotImplemented, "Data of %s: backend %q has no shared buffers", b.shape, Name)
}

// CopyToDevice is an error: a backend has one device.
func (b *Buffer) CopyToDevice(num compute.DeviceNum) (compute.Buffer, error) {
	return nil, errors.Errorf("CopyToDevice of %s: backend %q has device 0 only, not %d to copy to", b.shape, Name, num)
}
