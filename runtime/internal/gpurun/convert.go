package gpurun

import (
	"encoding/binary"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
)

// wordSize is the size of an element in device memory that is not stored in its own size.
const wordSize = shader.ElemSize

// pack converts host elements to device elements of some size; len(dst) determines the number. Small
// elements may become words. A bool becomes 0 or 1.
func pack(dst []byte, dt ir.DType, elem int64, src []byte) {
	size := dt.Size()
	if elem == int64(size) {
		n := copy(dst, src)
		if dt == ir.Bool {
			for i, x := range dst[:n] {
				dst[i] = min(x, 1)
			}
		}
		return
	}
	n := len(dst) / wordSize
	src = src[:n*size]
	signed, fill := dt.Held() == ir.Int32, 8*(wordSize-size)
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
		binary.LittleEndian.PutUint32(dst[i*wordSize:], w)
	}
}

// unpack is the reverse of pack; len(src) determines the number.
func unpack(dst []byte, dt ir.DType, elem int64, src []byte) {
	size := dt.Size()
	if elem == int64(size) {
		copy(dst, src)
		return
	}
	n := len(src) / wordSize
	dst = dst[:n*size]
	for i := range n {
		copy(dst[i*size:(i+1)*size], src[i*wordSize:])
	}
}
