package millrace

import (
	"io"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// FromReader makes a tensor from the bytes of its elements: in row-major order,
// little-endian, bool in one byte of which any but 0 is true. It reads as many
// bytes as the shape needs and no more; fewer are io.ErrUnexpectedEOF. Without
// a shape the tensor is 0-d.
//
// The elements go to the device piece by piece, so that a large file is never
// held twice. Memory for all of them is taken first: compare a shape that comes
// from elsewhere with the size of what r reads before calling. For whole files
// see the packages npy and safetensors.
func FromReader(r io.Reader, dt DType, shape ...int) (*Tensor, error) {
	return FromReaderOn(anywhere{}, r, dt, shape...)
}

// FromReaderOn is [FromReader] in a place.
func FromReaderOn(p Place, r io.Reader, dt DType, shape ...int) (*Tensor, error) {
	const op = "fromreader"
	place, err := placeOf(p)
	if err != nil {
		return nil, failure(op, err)
	}
	if !dt.Tensor() {
		return nil, failure(op, dtypeErr("%v is no dtype of tensors", dt))
	}
	if r == nil {
		return nil, failure(op, errNilReader)
	}
	t := new(Tensor)
	if err := stream.FromReader(&t.v, place, dt, append(ir.Shape{}, shape...), r); err != nil {
		return nil, failure(op, err)
	}
	return t, nil
}

// WriteTo runs what t needs and writes the bytes of its elements, as
// [FromReader] reads them, piece by piece. It returns how many bytes were written, and the error
// t carries, or that running or w found.
func (t *Tensor) WriteTo(w io.Writer) (int64, error) {
	const op = "writeto"
	if !t.made() {
		return 0, failure(op, errNilTensor)
	}
	if err := t.Err(); err != nil {
		return 0, err
	}
	if w == nil {
		return 0, failure(op, errNilWriter, t)
	}
	n, err := stream.WriteTo(&t.v, w)
	if err != nil {
		return n, failure(op, err, t)
	}
	return n, nil
}
