package gpurun

import (
	"encoding/binary"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
)

// elemSize is the size of an element of any dtype in device memory.
const elemSize = shader.ElemSize

// pack converts host elements to device elements; len(dst) determines the number. Small elements
// become words, a bool the word 0 or 1.
func pack(dst []byte, dt ir.DType, src []byte) {
	size := dt.Size()
	if size == elemSize {
		copy(dst, src)
		return
	}
	n := len(dst) / elemSize
	src = src[:n*size]
	for i := range n {
		bits := uint64(src[i*size])
		switch {
		case size == 2:
			bits = uint64(binary.LittleEndian.Uint16(src[2*i:]))
		case dt == ir.Bool && bits != 0:
			bits = 1
		}
		binary.LittleEndian.PutUint32(dst[i*elemSize:], shader.Word(dt, bits))
	}
}

// unpack is the reverse of pack; len(src) determines the number.
func unpack(dst []byte, dt ir.DType, src []byte) {
	size := dt.Size()
	if size == elemSize {
		copy(dst, src)
		return
	}
	n := len(src) / elemSize
	dst = dst[:n*size]
	for i := range n {
		copy(dst[i*size:(i+1)*size], src[i*elemSize:])
	}
}
