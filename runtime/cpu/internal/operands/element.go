package operands

import "unsafe"

// Element returns the bits of an element of 1, 2, 4 or 8 bytes.
func Element(p unsafe.Pointer, size int32) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

// SetElement stores the bits of an element of 1, 2, 4 or 8 bytes.
func SetElement(p unsafe.Pointer, size int32, bits uint64) {
	switch size {
	case 1:
		*(*uint8)(p) = uint8(bits)
	case 2:
		*(*uint16)(p) = uint16(bits)
	case 4:
		*(*uint32)(p) = uint32(bits)
	default:
		*(*uint64)(p) = bits
	}
}
