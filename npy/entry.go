package npy

import (
	"io"
	"math"
)

// unpromised is the length of a compressed file of an archive. The archive states one, but cannot
// be trusted.
const unpromised = 0

// entry reads a file of an archive and knows how many more bytes that file has for certain: for a
// file that is not compressed, at most those of the archive.
type entry struct {
	r    io.Reader
	left int64
}

func (e *entry) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.left = max(e.left-int64(n), 0)
	return n, err
}

// Len returns the number of bytes left, for tensorfile.Left.
func (e *entry) Len() int { return int(min(e.left, math.MaxInt)) }
