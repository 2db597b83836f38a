package onnx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/millrace-go/millrace"
)

// storage finds the data that tensors keep outside of the model's file. Its zero value has none.
type storage struct {
	root  *os.Root
	files map[string]*os.File
}

// folder is the storage of a model in a file of the folder.
func folder(dir string) (*storage, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &storage{root, map[string]*os.File{}}, nil
}

func (s *storage) close() {
	for _, f := range s.files {
		f.Close()
	}
	if s.root != nil {
		s.root.Close()
	}
}

// open returns the elements of a tensor with external data. A location outside of the folder is an
// error, also if a link leads there.
func (s *storage) open(t *protoTensor, need int64) (io.Reader, error) {
	var location string
	var offset, length int64 = 0, -1
	for _, e := range t.external {
		var err error
		switch e.key {
		case "location":
			location = e.value
		case "offset":
			offset, err = strconv.ParseInt(e.value, 10, 64)
		case "length":
			length, err = strconv.ParseInt(e.value, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("external data: %s: %w", e.key, err)
		}
	}
	if location == "" {
		return nil, errors.New("external data without a location")
	}
	if s.root == nil {
		return nil, fmt.Errorf("data in file %q, but the model was not opened from a file", location)
	}
	f := s.files[location]
	if f == nil {
		var err error
		if f, err = s.root.Open(location); err != nil {
			return nil, fmt.Errorf("external data: %w", err)
		}
		s.files[location] = f
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if length < 0 {
		length = info.Size() - offset
	}
	if offset < 0 || length != need || offset > info.Size() || need > info.Size()-offset {
		return nil, fmt.Errorf("external data: file %q has %d bytes, and the tensor needs %d from byte %d (length %d)",
			location, info.Size(), need, offset, length)
	}
	return io.NewSectionReader(f, offset, need), nil
}

// shapeOf checks a tensor's dimensions and returns the number of elements.
func shapeOf(t *protoTensor) (shape []int, n int64, err error) {
	if len(t.dims) > 8 {
		return nil, 0, fmt.Errorf("%w: %d dimensions; tensors have at most 8", millrace.ErrShape, len(t.dims))
	}
	n = 1
	for _, d := range t.dims {
		if d < 0 || d > math.MaxInt32*int64(1<<16) || n > 0 && d > math.MaxInt64/16/n {
			return nil, 0, fmt.Errorf("%w: impossible dimensions %v", millrace.ErrShape, t.dims)
		}
		shape, n = append(shape, int(d)), n*d
	}
	return shape, n, nil
}

// elements returns a reader of a tensor's elements as little-endian bytes, and checks their number.
func elements(t *protoTensor, s *storage) (r io.Reader, dt millrace.DType, shape []int, err error) {
	if dt, err = dtypeOf(t.elem); err != nil {
		return nil, dt, nil, err
	}
	shape, n, err := shapeOf(t)
	if err != nil {
		return nil, dt, nil, err
	}
	size := int64(sizeOf(dt))
	if t.location == 1 {
		r, err = s.open(t, n*size)
		return r, dt, shape, err
	}
	if t.raw != nil {
		if int64(len(t.raw)) != n*size {
			return nil, dt, nil, fmt.Errorf("dimensions %v of %v need %d bytes, and there are %d", t.dims, dt, n*size, len(t.raw))
		}
		return bytes.NewReader(t.raw), dt, shape, nil
	}
	raw, count := typed(t, dt)
	if int64(count) != n {
		return nil, dt, nil, fmt.Errorf("dimensions %v need %d elements, and there are %d", t.dims, n, count)
	}
	return bytes.NewReader(raw), dt, shape, nil
}

// typed converts elements in a tensor's typed fields to bytes.
func typed(t *protoTensor, dt millrace.DType) (raw []byte, count int) {
	le := binary.LittleEndian
	switch dt {
	case millrace.Float32:
		for _, v := range t.floats {
			raw = le.AppendUint32(raw, math.Float32bits(v))
		}
		return raw, len(t.floats)
	case millrace.Float64:
		for _, v := range t.doubles {
			raw = le.AppendUint64(raw, math.Float64bits(v))
		}
		return raw, len(t.doubles)
	case millrace.Int64:
		for _, v := range t.ints64 {
			raw = le.AppendUint64(raw, uint64(v))
		}
		return raw, len(t.ints64)
	case millrace.Uint32, millrace.Uint64:
		for _, v := range t.uints {
			if dt == millrace.Uint32 {
				raw = le.AppendUint32(raw, uint32(v))
			} else {
				raw = le.AppendUint64(raw, v)
			}
		}
		return raw, len(t.uints)
	}
	// The field int32_data has all narrower types, 16-bit floats as their bits.
	for _, v := range t.ints32 {
		switch sizeOf(dt) {
		case 1:
			raw = append(raw, byte(v))
		case 2:
			raw = le.AppendUint16(raw, uint16(v))
		default:
			raw = le.AppendUint32(raw, uint32(v))
		}
	}
	return raw, len(t.ints32)
}

// load makes a tensor in a place.
func load(p millrace.Place, t *protoTensor, s *storage) (*millrace.Tensor, error) {
	r, dt, shape, err := elements(t, s)
	if err != nil {
		return nil, err
	}
	return millrace.FromReaderOn(p, r, dt, shape...)
}

// loadHost makes a value on the host, if it is small and of a dtype that host values have.
func loadHost(t *protoTensor, s *storage) (*host, error) {
	r, dt, shape, err := elements(t, s)
	if err != nil {
		return nil, err
	}
	if !hostDType(dt) || product(shape) > hostLimit {
		return nil, nil
	}
	raw := make([]byte, product(shape)*sizeOf(dt))
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, err
	}
	return hostOf(dt, shape, raw), nil
}
