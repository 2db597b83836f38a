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

// rawChunk is how many bytes pass through the host's memory at a time: enough
// that a copy is worth several threads, little enough to stay in cache.
const rawChunk = 1 << 20

// bigHost says that this machine keeps the high byte first.
var bigHost = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// Fill writes n elements to a block as r gives them.
func (m *Pool) Fill(b *Block, dt ir.DType, n int64, r io.Reader) error {
	size := int64(dt.Size())
	chunk := make([]byte, min(n*size, rawChunk))
	for at := int64(0); at < n; {
		part := chunk[:min(int64(len(chunk)), (n-at)*size)]
		if got, err := io.ReadFull(r, part); err != nil {
			if errors.Is(err, io.EOF) { // between two parts, which the caller cannot know of
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

// inOrder reports a view of neighbouring elements in order, such as a slice
// of the outermost dimension, and where they begin.
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

// HostOrder turns little-endian elements into this machine's, or back, and any
// non-zero bool, which other programs write, into the 1 that the engine knows.
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
