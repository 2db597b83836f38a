package npy

import (
	"io"
	"math"
)

// unpromised is the length of what a compressed file holds: its archive says
// one, but a promise is no bytes.
const unpromised = 0

// entry reads a file of an archive and tells how many bytes it is sure to have
// yet: those of a file that is stored as it is, as far as the archive goes.
type entry struct {
	r    io.Reader
	left int64
}

func (e *entry) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.left = max(e.left-int64(n), 0)
	return n, err
}

// Len is what tensorfile.Left asks for.
func (e *entry) Len() int { return int(min(e.left, math.MaxInt)) }
