package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// scatterJoins are the loops by which a scatter's values join the indexed elements, for one way to
// combine.
type scatterJoins struct {
	// each joins value k to element at[k]+k*step of base, in order. It skips value k if at[k] is
	// negative.
	each func(base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer)
	// along joins n values to n neighbours.
	along func(to, values unsafe.Pointer, n int64)
	// code returns machine code that does the same as along; nil if there is none.
	code func() *machineFold
}

// scatterInto fills in the joins of all dtypes.
func scatterInto(f *foldTable, soft bool, j32 func(ir.Op) joins[float32], j64 func(ir.Op) joins[float64]) {
	scatterPlain[uint8](f, ir.Bool)
	scatterPlain[uint8](f, ir.Uint8)
	scatterPlain[uint16](f, ir.Uint16)
	scatterPlain[uint32](f, ir.Uint32)
	scatterPlain[uint64](f, ir.Uint64)
	scatterPlain[int8](f, ir.Int8)
	scatterPlain[int16](f, ir.Int16)
	scatterPlain[int32](f, ir.Int32)
	scatterPlain[int64](f, ir.Int64)
	scatterBy(f, ir.Float16, widenFloat16, narrowFloat16, j32)
	scatterBy(f, ir.BFloat16, widenBFloat16, narrowBFloat16, j32)
	if soft {
		scatterBy(f, ir.Float32, same[float32], same[float32], j32)
		scatterBy(f, ir.Float64, same[float64], same[float64], j64)
		return
	}
	scatterPlain[float32](f, ir.Float32)
	scatterPlain[float64](f, ir.Float64)
}

// scatterPlain fills in a dtype whose arithmetic is Go's. A dtype narrower than its compute dtype
// wraps to the same bits.
func scatterPlain[T stored](f *foldTable, dt ir.DType) {
	f.dtype[dt].joins = [ir.NumCombines]scatterJoins{
		ir.CombineSet: {each: setEach[T], along: copyAlong[T]},
		ir.CombineAdd: {each: plusEach[T], along: alongBy(plusInto[T])},
		ir.CombineMul: {each: timesEach[T], along: alongBy(timesInto[T])},
		ir.CombineMax: {each: largerEach[T], along: alongBy(largerInto[T])},
		ir.CombineMin: {each: smallerEach[T], along: alongBy(smallerInto[T])},
	}
}

func alongBy[T stored](into func(to, from []T)) func(to, values unsafe.Pointer, n int64) {
	return func(to, values unsafe.Pointer, n int64) { into(elements[T](to, n), elements[T](values, n)) }
}

func copyAlong[T stored](to, values unsafe.Pointer, n int64) {
	copy(elements[T](to, n), elements[T](values, n))
}

// scatterBy fills in a dtype E that is computed as T.
func scatterBy[E stored, T computing](f *foldTable, dt ir.DType, widen func(E) T, narrow func(T) E, joinsOf func(ir.Op) joins[T]) {
	f.dtype[dt].joins[ir.CombineSet] = scatterJoins{each: setEach[E], along: copyAlong[E]}
	for how := ir.CombineSet + 1; how < ir.NumCombines; how++ {
		one := joinsOf(how.Op()).one
		join := func(to *E, x E) { *to = narrow(one(widen(*to), widen(x))) }
		f.dtype[dt].joins[how] = scatterJoins{
			each: func(base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
				for k, x := range elements[E](values, int64(len(at))) {
					if at[k] >= 0 {
						join(elemAt[E](base, at[k]+int64(k)*step), x)
					}
				}
			},
			along: func(to, values unsafe.Pointer, n int64) {
				list := elements[E](to, n)
				for k, x := range elements[E](values, n) {
					join(&list[k], x)
				}
			},
		}
	}
}

func elemAt[E any](base unsafe.Pointer, i int64) *E {
	var e E
	return (*E)(unsafe.Add(base, i*int64(unsafe.Sizeof(e))))
}

func setEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			*elemAt[T](base, at[k]+int64(k)*step) = x
		}
	}
}

func plusEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			*elemAt[T](base, at[k]+int64(k)*step) += x
		}
	}
}

func timesEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			to := elemAt[T](base, at[k]+int64(k)*step)
			*to = T(*to * x)
		}
	}
}

func largerEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			to := elemAt[T](base, at[k]+int64(k)*step)
			*to = max(*to, x)
		}
	}
}

func smallerEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			to := elemAt[T](base, at[k]+int64(k)*step)
			*to = min(*to, x)
		}
	}
}
