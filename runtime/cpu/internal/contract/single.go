package contract

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// loneBlocks is the number of blocks of k from which on it is faster to compute the chains of a
// single result side by side.
const loneBlocks = 3

// single reports that there is a single result and that both its sides are dense along k.
func (j *job) single() bool {
	p := &j.plan
	return p.m == 1 && p.n == 1 && p.x.Kind == Memory && p.x.KStride == 1 && p.y.KStride == 1 && p.k/blockK >= loneBlocks && j.f.Dots >= 0
}

// loneResult computes the whole blocks of k of the single result, one block per lane, and returns
// their number.
func (j *job) loneResult(batch int64, out unsafe.Pointer) int64 {
	j.c.lose()
	x, y, whole := j.element(&j.x, batch, 0, 0), j.element(&j.y, batch, 0, 0), j.k/blockK
	var blocks [8]uint64 // 8 of 8 bytes or 16 of 4 bytes
	f := native.DotsFrame{To: unsafe.Pointer(&blocks), K: blockK}
	zero(out, 0, 1, j.size)
	for b := int64(0); b < whole; b += j.lanes {
		for l := range j.lanes {
			at := min(b+l, whole-1) * blockK * j.size
			f.X[l], f.Y[l] = unsafe.Add(x, at), unsafe.Add(y, at)
		}
		j.f.call(j.f.Dots, unsafe.Pointer(&f), j.mxcsr)
		addInOrder(j.c.DT, j.c.Soft, out, unsafe.Pointer(&blocks), min(j.lanes, whole-b))
	}
	return whole
}

// addInOrder adds n elements to a total, one after another.
func addInOrder(dt ir.DType, soft bool, total, list unsafe.Pointer, n int64) {
	switch {
	case dt == ir.Float32 && soft:
		softSums(ir.FlushAdd32, total, list, n)
	case dt == ir.Float64 && soft:
		softSums(ir.FlushAdd64, total, list, n)
	case dt == ir.Float32:
		sums[float32](total, list, n)
	case dt == ir.Float64:
		sums[float64](total, list, n)
	case dt.Size() == 8:
		sums[uint64](total, list, n)
	default:
		sums[uint32](total, list, n)
	}
}

func sums[T element](total, list unsafe.Pointer, n int64) {
	for _, v := range unsafe.Slice((*T)(list), n) {
		*(*T)(total) += v
	}
}

func softSums[T element](add func(x, y T) T, total, list unsafe.Pointer, n int64) {
	for _, v := range unsafe.Slice((*T)(list), n) {
		*(*T)(total) = add(*(*T)(total), v)
	}
}
