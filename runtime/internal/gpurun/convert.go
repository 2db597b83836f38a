package gpurun

import (
	"encoding/binary"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
)

// elemSize is the bytes of an element in device memory, of any dtype.
const elemSize = shader.ElemSize

// pack turns host elements into device elements; len(dst) decides how many.
// Small ones become words, a bool the word 0 or 1.
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

// unpack is the way back; len(src) decides how many.
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
