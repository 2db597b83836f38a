package millrace

import (
	"io"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// FromReader makes a tensor from the bytes of its elements: in row-major order and little-endian,
// with a bool in one byte, of which every value but 0 is true. It reads as many bytes as the
// shape needs and no more; fewer are io.ErrUnexpectedEOF. Without a shape the tensor is 0-d.
//
// The elements are copied to the device piece by piece, so a large file is never in memory twice.
// Memory for all elements is allocated first: if the shape comes from an untrusted source,
// compare it with the size of r's data before the call. For whole files see the packages npy and
// safetensors.
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

// WriteTo runs the ops that t needs and writes the bytes of its elements piece by piece, in the
// form that [FromReader] reads. It returns how many bytes were written, and the error that t
// carries, or that running or w reports.
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
