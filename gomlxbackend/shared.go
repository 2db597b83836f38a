package gomlxbackend

import (
	"reflect"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/pkg/errors"
)

// A program that has the slice of a buffer may write to it whenever no Execute
// is under way that reads the buffer. So: Execute returns only once all is read and
// computed; memory that a program has a slice of is never that of a constant or of
// another buffer; and it is Go's, so that a slice outlives its buffer. Data moves
// elements there that are in the device's own memory, once. Elements that Go and
// the device lay out differently, complex and packed ones, stay in the slice, and
// are copied to the device by each Execute.

// HasSharedBuffers reports that the device computes on memory of Go, as the CPU
// does.
func (b *Backend) HasSharedBuffers() bool { return hostapi.Shares(b.dev, millrace.Float32) }

// NewSharedBuffer makes a buffer of zeros, and the slice that is its memory. Where
// there are none, see HasSharedBuffers, it returns compute.ErrNotImplemented.
func (b *Backend) NewSharedBuffer(num compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	const what = "NewSharedBuffer"
	if err := b.sharing(what, shape); err != nil {
		return nil, nil, err
	}
	if err := b.usable(what, num, shape); err != nil {
		return nil, nil, err
	}
	c, err := b.share(shape)
	if err != nil {
		return nil, nil, errors.WithMessagef(err, "%s of %s", what, shape)
	}
	return b.buffer(shape.Clone(), *c), c.flat, nil
}

func (b *Backend) sharing(what string, shape shapes.Shape) error {
	if !b.HasSharedBuffers() {
		return errors.Wrapf(compute.ErrNotImplemented, "%s of %s: backend %q on %s has no shared buffers", what, shape, Name, b.dev.Name())
	}
	return nil
}

// inPlace reports that elements lie on the device as they do in Go's memory.
func (b *Backend) inPlace(shape shapes.Shape) bool {
	row, ok := dtypeRows[shape.DType]
	return ok && !shape.DType.IsPacked() && hostapi.Shares(b.dev, row.dt)
}

// share makes a content of zeros with a slice. Slices that no tensor lies in are
// Go's memory all the same, so that they count towards its limit.
func (b *Backend) share(shape shapes.Shape) (*content, error) {
	dt, dims, home := millrace.Uint8, []int{shape.DType.SizeForDimensions(shape.Dimensions...)}, b.inPlace(shape)
	if home {
		dt, dims = dtypeRows[shape.DType].dt, dimsOf(shape)
	}
	made, data, err := hostapi.Share(b.dev, dt, dims)
	if err != nil {
		return nil, err
	}
	c := &content{flat: sliceOf(data, shape), home: home}
	if t := made.(*millrace.Tensor); home {
		c.t = t
	} else {
		c.room = t
	}
	return c, nil
}

// sliceOf is memory as a slice of a dtype's Go type, and not nil.
func sliceOf(data []byte, shape shapes.Shape) any {
	if shape.Size() == 0 {
		return dtypes.MakeAnySlice(shape.DType, 0)
	}
	return dtypes.UnsafeAnySliceFromBytes(unsafe.Pointer(unsafe.SliceData(data)), shape.DType, shape.Size())
}

// Data is the memory of the buffer, as a slice of the dtype's Go type (uint8 for
// packed ones): the same each time, valid until the buffer is finalized or donated.
// What is written there, while no Execute reads the buffer, is what the buffer
// holds. A slice that is kept longer is no longer the buffer's memory, which may
// be a result's by then, but can still be read. The first call for a
// buffer that NewSharedBuffer did not make copies the elements.
func (b *Buffer) Data() (any, error) {
	const what = "Data"
	if b == nil {
		return nil, errNil(what)
	}
	b.giving.Lock()
	defer b.giving.Unlock()
	for {
		c, err := b.content(what)
		if err != nil {
			return nil, err
		}
		if err := b.backend.sharing(what, b.shape); err != nil {
			return nil, err
		}
		if b.backend.closed.Load() {
			return nil, errors.Errorf("%s of %s: backend %q was finalized", what, b.shape, Name)
		}
		if c.flat != nil {
			return c.flat, nil
		}
		next, err := b.shared(c)
		if err != nil {
			return nil, errors.WithMessagef(err, "%s of %s", what, b.shape)
		}
		if b.c.CompareAndSwap(c, next) {
			if next.t != c.t && b.using.Load() == 0 { // whoever has c still may go on: then it is the collector's
				c.drop()
			}
			return next.flat, nil
		}
		if next.t != c.t {
			next.drop()
		}
	}
}

// shared is a content with a slice, of the same elements.
func (b *Buffer) shared(c *content) (*content, error) {
	if c.home {
		data, _ := hostapi.Shared(c.t)
		if data == nil {
			return nil, errors.New("the buffer was finalized or donated meanwhile")
		}
		return &content{t: c.t, flat: sliceOf(data, b.shape), home: true}, nil
	}
	next, err := b.backend.share(b.shape)
	if err != nil || b.shape.Size() == 0 {
		return next, err
	}
	if err = c.read(next.flat, b.shape.DType); err != nil {
		next.drop()
		return nil, err
	}
	return next, nil
}

// read copies the elements into a slice.
func (c *content) read(flat any, dt dtypes.DType) error {
	if c.t == nil {
		reflect.Copy(reflect.ValueOf(flat), reflect.ValueOf(c.flat))
		return nil
	}
	return fromDevice(flat, dt, c.t, c.im)
}

// onDevice is a content whose elements are in tensors: c, or a copy of its slice.
func (c *content) onDevice(b *Backend, shape shapes.Shape) (*content, error) {
	if c.t != nil {
		return c, nil
	}
	re, im, err := toDevice(b.dev, c.flat, shape)
	if err != nil {
		return nil, errors.WithMessagef(err, "%s", shape)
	}
	return &content{t: re, im: im}, nil
}

// settle sees to it that tensors of a result which came to lie in memory that a
// program has, or had, a slice of are alone there: a parameter that is returned
// as it is gets a copy.
func (c *content) settle(s *millrace.Stream, b *Backend, shape shapes.Shape) error {
	for _, t := range []**millrace.Tensor{&c.t, &c.im} {
		if *t == nil {
			continue
		}
		data, alone := hostapi.Shared(*t)
		if data == nil {
			continue
		}
		if alone {
			c.home = b.inPlace(shape)
			continue
		}
		own := copyOf(s, *t)
		hostapi.Drop(*t)
		*t = own
		if err := own.Eval(); err != nil {
			return err
		}
	}
	return nil
}

// copyOf is a tensor in memory of its own.
func copyOf(p millrace.Place, t *millrace.Tensor) *millrace.Tensor {
	yes := millrace.FullOn(p, millrace.Bool, 1)
	defer yes.Release()
	return millrace.Where(yes, t, t)
}
