package gomlxbackend

import (
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/pkg/errors"
)

// Buffer is a tensor on the backend's device. It is safe for concurrent use. A
// buffer that is dropped without Finalize is found by Go's collector. Its
// elements change only through a slice that Data or NewSharedBuffer gave, which
// must not be written to while an Execute reads the buffer; buffers that have
// none may share memory behind the scenes.
type Buffer struct {
	backend *Backend
	shape   shapes.Shape
	c       atomic.Pointer[content] // nil once finalised or donated
	using   atomic.Int32            // calls that may have a content which c no longer is
	giving  sync.Mutex              // of Data
	first   content                 // what c was in the beginning
}

// content is where the elements of a buffer are. It does not change; whoever
// takes it out of the buffer has it for himself.
type content struct {
	t  *millrace.Tensor // nil where the elements are in flat only
	im *millrace.Tensor // of complex elements: the imaginary parts, and t is the real ones

	flat any              // the slice that the program has, if it has one
	home bool             // t lies in memory of Go, where no other buffer's tensor does
	room *millrace.Tensor // where t is nil: what has the slice counted as the device's
}

// drop gives the tensors back, which nobody else has.
func (c *content) drop() {
	for _, t := range []*millrace.Tensor{c.t, c.im, c.room} {
		if t != nil {
			hostapi.Drop(t)
		}
	}
}

// alive reports that nobody released the tensors.
func (c *content) alive() bool { return c.t.Err() == nil && (c.im == nil || c.im.Err() == nil) }

var _ compute.Buffer = (*Buffer)(nil)

func (b *Backend) buffer(shape shapes.Shape, c content) *Buffer {
	buf := &Buffer{backend: b, shape: shape, first: c}
	buf.c.Store(&buf.first)
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
	return b.buffer(shape.Clone(), content{t: t, im: im}), nil
}

// errNil is the error of calls on no buffer.
func errNil(what string) error { return errors.Errorf("%s: the buffer is nil", what) }

// content is that of a buffer which is still alive.
func (b *Buffer) content(what string) (*content, error) {
	if b == nil {
		return nil, errNil(what)
	}
	c := b.c.Load()
	if c == nil {
		return nil, errors.Errorf("%s of %s: the buffer was finalized or donated", what, b.shape)
	}
	return c, nil
}

// Backend is the backend that the buffer belongs to, nil for no buffer.
func (b *Buffer) Backend() compute.Backend {
	if b == nil {
		return nil
	}
	return b.backend
}

// Finalize gives the memory back at once, but for what a slice of the program
// shares: that is the collector's. Doing so twice is harmless.
func (b *Buffer) Finalize() error {
	if b == nil {
		return errNil("Finalize")
	}
	if c := b.c.Swap(nil); c != nil {
		c.drop() // the buffer itself tells of a use after this
	}
	return nil
}

// Shape of the buffer.
func (b *Buffer) Shape() (shapes.Shape, error) {
	if _, err := b.content("Shape"); err != nil {
		return shapes.Invalid(), err
	}
	return b.shape, nil
}

// DeviceNum is 0.
func (b *Buffer) DeviceNum() (compute.DeviceNum, error) {
	_, err := b.content("DeviceNum")
	return 0, err
}

// ToFlatData copies the elements into a slice of as many of the dtype's Go type.
func (b *Buffer) ToFlatData(flat any) error {
	const what = "ToFlatData"
	if b == nil {
		return errNil(what)
	}
	b.using.Add(1)
	defer b.using.Add(-1)
	c, err := b.content(what)
	if err != nil {
		return err
	}
	if err := checkFlat(flat, b.shape); err != nil {
		return errors.WithMessage(err, what)
	}
	if b.shape.Size() == 0 {
		return nil
	}
	if err := c.read(flat, b.shape.DType); err != nil {
		return errors.WithMessagef(err, "%s of %s", what, b.shape)
	}
	return nil
}

// CopyToDevice is an error: a backend has one device.
func (b *Buffer) CopyToDevice(num compute.DeviceNum) (compute.Buffer, error) {
	if b == nil {
		return nil, errNil("CopyToDevice")
	}
	return nil, errors.Errorf("CopyToDevice of %s: backend %q has device 0 only, not %d to copy to", b.shape, Name, num)
}
