package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
)

// rawChunk is how many bytes pass through host memory at a time: large enough for a copy by several
// threads, small enough to stay in cache.
const rawChunk = 1 << 20

// bigHost is true on a big-endian machine.
var bigHost = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// Fill reads n elements from r into a block.
func (m *Pool) Fill(b *Block, dt ir.DType, n int64, r io.Reader) error {
	size := int64(dt.Size())
	chunk := make([]byte, min(n*size, rawChunk))
	for at := int64(0); at < n; {
		part := chunk[:min(int64(len(chunk)), (n-at)*size)]
		if got, err := io.ReadFull(r, part); err != nil {
			if errors.Is(err, io.EOF) { // between two parts, a division that the caller does not know
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%w after %d of %d bytes", err, at*size+int64(got), n*size)
		}
		HostOrder(part, dt)
		if err := m.Driver.Write(b.Buf, dt, at, part); err != nil {
			return err
		}
		at += int64(len(part)) / size
	}
	return nil
}

// inOrder reports whether a view's elements are contiguous and in order, as those of a slice of the
// outermost dimension, and the element where they start.
func inOrder(w *fusion.View, shape ir.Shape) (off int64, ok bool) {
	if len(w.Stages) > 0 {
		return 0, false
	}
	next := int64(1)
	for k, d := range slices.Backward(shape) {
		if d != 1 && w.Stride[k] != next {
			return 0, false
		}
		next *= int64(d)
	}
	return w.Offset, true
}

// HostOrder converts little-endian elements to the byte order of this machine, or back. It also
// turns any non-zero bool, which other programs may write, into 1.
func HostOrder(b []byte, dt ir.DType) {
	if dt == ir.Bool {
		for i, x := range b {
			if x > 1 {
				b[i] = 1
			}
		}
	}
	if size := dt.Size(); bigHost && size > 1 {
		for ; len(b) >= size; b = b[size:] {
			slices.Reverse(b[:size])
		}
	}
}
