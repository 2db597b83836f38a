package dist

import (
	"fmt"
	"unsafe"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/half"
)

// A sum adds the parts of ranks 0 to n-1 as neighbours in pairs, again and again; an odd one passes:
//
//	0   1   2   3   4
//	0+1     2+3     4
//	0+1+2+3         4
//	0+1+2+3+4
//
// This order does not depend on the driver, so neither do the bits. Parts of float16 and bfloat16
// are added in float32 and rounded once; integers wrap around.

// sumBlock is how many elements are added at once, so that they stay in the cache.
const sumBlock = 2048

// sums has the function of each dtype that can be added.
var sums = map[millrace.DType]func(dst []byte, parts [][]byte){
	millrace.Float32:  tree[float32],
	millrace.Float64:  tree[float64],
	millrace.Int8:     tree[int8],
	millrace.Int16:    tree[int16],
	millrace.Int32:    tree[int32],
	millrace.Int64:    tree[int64],
	millrace.Uint8:    tree[uint8],
	millrace.Uint16:   tree[uint16],
	millrace.Uint32:   tree[uint32],
	millrace.Uint64:   tree[uint64],
	millrace.Float16:  sumFloat16,
	millrace.BFloat16: sumBFloat16,
}

func sumFloat16(dst []byte, parts [][]byte) {
	widened(dst, parts, half.WidenFloat16, half.NarrowFloat16)
}

func sumBFloat16(dst []byte, parts [][]byte) {
	widened(dst, parts, half.WidenBFloat16, half.NarrowBFloat16)
}

// stepSum is the sum of a dtype in a training step. bfloat16 is rounded after each addition there, so
// that the bits do not depend on which additions of the tree a rank has already made.
func stepSum(dt millrace.DType) func(dst []byte, parts [][]byte) {
	if dt == millrace.BFloat16 {
		return treeBFloat16
	}
	return sums[dt]
}

// checkSum finds dtypes that cannot be added.
func checkSum(dt millrace.DType) error {
	if sums[dt] == nil {
		return fmt.Errorf("%w: %v has no sum", millrace.ErrDType, dt)
	}
	return nil
}

// as views memory as elements. It must be aligned for them.
func as[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// number is an element that is added in its own type.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func plus[T number](a, b []T) {
	b = b[:len(a)]
	for k := range a {
		a[k] += b[k]
	}
}

func plusBFloat16(a, b []uint16) {
	b = b[:len(a)]
	for k := range a {
		a[k] = half.NarrowBFloat16(half.WidenBFloat16(a[k]) + half.WidenBFloat16(b[k]))
	}
}

// fold adds the parts in the order above. The sum is then in the first one.
func fold[T number](parts [][]T, plus func(a, b []T)) {
	for step := 1; step < len(parts); step *= 2 {
		for i := 0; i+step < len(parts); i += 2 * step {
			plus(parts[i], parts[i+step])
		}
	}
}

// tree adds parts, which it overwrites, into dst.
func tree[T number](dst []byte, parts [][]byte) { blocks(dst, parts, plus[T]) }

func treeBFloat16(dst []byte, parts [][]byte) { blocks(dst, parts, plusBFloat16) }

func blocks[T number](dst []byte, parts [][]byte, plus func(a, b []T)) {
	to, all := as[T](dst), make([][]T, len(parts))
	block := make([][]T, len(parts))
	for r, p := range parts {
		all[r] = as[T](p)
	}
	for at := 0; at < len(to); at += sumBlock {
		end := min(at+sumBlock, len(to))
		for r := range all {
			block[r] = all[r][at:end]
		}
		fold(block, plus)
		copy(to[at:end], block[0])
	}
}

// widened is the sum of a dtype that is added in float32.
func widened(dst []byte, parts [][]byte, wide func(uint16) float32, narrow func(float32) uint16) {
	to := as[uint16](dst)
	memory := make([]float32, len(parts)*min(sumBlock, len(to)))
	block := make([][]float32, len(parts))
	for at := 0; at < len(to); at += sumBlock {
		n := min(sumBlock, len(to)-at)
		for r, p := range parts {
			block[r] = memory[r*n : (r+1)*n]
			for k, x := range as[uint16](p)[at : at+n] {
				block[r][k] = wide(x)
			}
		}
		fold(block, plus[float32])
		for k, x := range block[0] {
			to[at+k] = narrow(x)
		}
	}
}
