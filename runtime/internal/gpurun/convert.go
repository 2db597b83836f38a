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
	signed, fill := dt.Held() == ir.Int32, 8*(elemSize-size)
	for i := range n {
		w := uint32(src[i*size])
		if size == 2 {
			w |= uint32(src[2*i+1]) << 8
		}
		switch {
		case signed:
			w = uint32(int32(w<<fill) >> fill)
		case dt == ir.Bool && w != 0:
			w = 1
		}
		binary.LittleEndian.PutUint32(dst[i*elemSize:], w)
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
