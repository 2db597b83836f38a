package operands

import "unsafe"

// CopyTile sets element i*ld + j of dst to element offset + i*rs + j*cs of src, for i < rows, j
// < cols. Elements have size bytes.
func CopyTile(size int, dst unsafe.Pointer, ld int64, src unsafe.Pointer, offset, rs, cs, rows, cols int64) {
	switch size {
	case 1:
		copyTile((*uint8)(dst), ld, (*uint8)(src), offset, rs, cs, rows, cols)
	case 2:
		copyTile((*uint16)(dst), ld, (*uint16)(src), offset, rs, cs, rows, cols)
	case 4:
		copyTile((*uint32)(dst), ld, (*uint32)(src), offset, rs, cs, rows, cols)
	default:
		copyTile((*uint64)(dst), ld, (*uint64)(src), offset, rs, cs, rows, cols)
	}
}

// copyTile is CopyTile for one type. Squares of 16 by 16 elements keep both sides in cache.
func copyTile[T any](dst *T, ld int64, src *T, offset, rs, cs, rows, cols int64) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	for i0 := int64(0); i0 < rows; i0 += 16 {
		for j0 := int64(0); j0 < cols; j0 += 16 {
			to := min(j0+16, cols)
			for i := i0; i < min(i0+16, rows); i++ {
				from := unsafe.Add(unsafe.Pointer(src), (offset+i*rs+j0*cs)*size)
				row := unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(dst), (i*ld+j0)*size)), to-j0)
				for j := range row {
					row[j] = *(*T)(unsafe.Add(from, int64(j)*cs*size))
				}
			}
		}
	}
}
