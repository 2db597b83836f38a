package memory

import "unsafe"

// Buffer is the memory of a tensor. It is never moved.
type Buffer struct {
	P      unsafe.Pointer // the first byte; it never changes
	bytes  int64          // requested size
	block  int64          // size of the block in the pool
	shared []byte         // P as memory of Go's heap, see AllocShared; nil for pool memory
	freed  bool
	lost   bool // abandoned
}

// Freed reports that the buffer was given back.
func (b *Buffer) Freed() bool { return b.freed }

// Shared returns the memory of a buffer of AllocShared, nil for other buffers.
func (b *Buffer) Shared() []byte { return b.shared }

// Bytes returns the usable size.
func (b *Buffer) Bytes() int64 { return b.bytes }

// Part returns n bytes from element off on, of elements of so many bytes. It returns false if the
// buffer does not have them, or was freed.
func (b *Buffer) Part(off, size, n int64) ([]byte, bool) {
	if size == 0 || b.freed || off < 0 || off > b.bytes/size || n > b.bytes-off*size {
		return nil, false
	}
	return unsafe.Slice((*byte)(unsafe.Add(b.P, off*size)), n), true
}
