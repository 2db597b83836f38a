package webgpu

import (
	"encoding/binary"

	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/ir"
)

// elemSize is the bytes of an element in device memory, of any dtype.
const elemSize = wgsl.ElemSize

// pack turns host elements into device elements; len(dst) decides how many. A
// byte becomes a word, a bool the word 0 or 1.
func pack(dst []byte, dt ir.DType, src []byte) {
	switch dt.Size() {
	case elemSize:
		copy(dst, src)
	case 1:
		n := len(dst) / elemSize
		src = src[:n]
		for i, b := range src {
			w := uint32(b)
			if dt == ir.Bool && w != 0 {
				w = 1
			}
			binary.LittleEndian.PutUint32(dst[i*elemSize:], w)
		}
	}
}

// unpack is the way back; len(src) decides how many.
func unpack(dst []byte, dt ir.DType, src []byte) {
	switch dt.Size() {
	case elemSize:
		copy(dst, src)
	case 1:
		n := len(src) / elemSize
		dst = dst[:n]
		for i := range dst {
			dst[i] = src[i*elemSize]
		}
	}
}
