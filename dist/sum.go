package dist

import (
	"fmt"
	"unsafe"

	"github.com/millrace-go/millrace"
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

// sums has the function of each dtype that can be added. It adds parts into dst, which may be one of
// them, but changes no other.
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
	widened(dst, parts, addFloat16s, widenFloat16s, narrowFloat16s)
}

func sumBFloat16(dst []byte, parts [][]byte) {
	widened(dst, parts, addBFloat16s, widenBFloat16s, narrowBFloat16s)
}

func treeBFloat16(dst []byte, parts [][]byte) { blocks(dst, parts, addBFloat16s) }

// summing is a sum: of which dtype, and whether each addition is rounded.
type summing struct {
	dt   millrace.DType
	each bool
}

// stepSum is the sum of a dtype in a training step. bfloat16 is rounded after each addition there, so
// that the bits do not depend on which additions of the tree a rank has already made.
func stepSum(dt millrace.DType) summing { return summing{dt, dt == millrace.BFloat16} }

// loops is the function of Go.
func (s summing) loops() func(dst []byte, parts [][]byte) {
	if s.each {
		return treeBFloat16
	}
	return sums[s.dt]
}

// add adds parts into dst, as the functions in sums do. Loops of Go do it where there is no machine
// code; the error says why it could not be made.
func (s summing) add(dst []byte, parts [][]byte) error {
	c, err := s.code()
	if c == nil {
		s.loops()(dst, parts)
		return err
	}
	c.add(dst, parts)
	return nil
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

// add adds two parts into dst, which may be one of them.
func add[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for k := range dst {
		dst[k] = a[k] + b[k]
	}
}

// fold adds parts in the order above into dst, which may be one of them. They are of one length, and
// stay as they are. room has place for half of them; list is changed.
func fold[T any](dst []T, list [][]T, room []T, add func(dst, a, b []T)) {
	for len(list) > 2 {
		half := list[:0] // a pair is read before its place in the list is written
		for len(list) > 1 {
			at := len(half) * len(dst)
			sum := room[at : at+len(dst)] // read before too, if it is a sum of the last round
			add(sum, list[0], list[1])
			half, list = append(half, sum), list[2:]
		}
		list = append(half, list...)
	}
	if len(list) == 1 {
		copy(dst, list[0])
		return
	}
	add(dst, list[0], list[1])
}

func tree[T number](dst []byte, parts [][]byte) { blocks(dst, parts, add[T]) }

func blocks[T any](dst []byte, parts [][]byte, add func(dst, a, b []T)) {
	to, list := as[T](dst), make([][]T, len(parts))
	room := make([]T, len(parts)/2*min(sumBlock, len(to)))
	for at := 0; at < len(to); at += sumBlock {
		end := min(at+sumBlock, len(to))
		list = list[:len(parts)]
		for r, p := range parts {
			list[r] = as[T](p)[at:end]
		}
		fold(to[at:end], list, room, add)
	}
}

// widened is the sum of a dtype that is added in float32, by functions on a block.
func widened(dst []byte, parts [][]byte, pair func(dst, a, b []uint16), wide func([]float32, []uint16), narrow func([]uint16, []float32)) {
	to := as[uint16](dst)
	if len(parts) == 2 {
		pair(to, as[uint16](parts[0]), as[uint16](parts[1]))
		return
	}
	n := min(sumBlock, len(to))
	memory, list := make([]float32, (len(parts)+len(parts)/2)*n), make([][]float32, len(parts))
	room := memory[len(parts)*n:]
	for at := 0; at < len(to); at += sumBlock {
		n := min(sumBlock, len(to)-at)
		for r, p := range parts {
			list[r] = memory[r*n : (r+1)*n]
			wide(list[r], as[uint16](p)[at:at+n])
		}
		sum := memory[:n]
		fold(sum, list, room, add[float32])
		narrow(to[at:at+n], sum)
	}
}
