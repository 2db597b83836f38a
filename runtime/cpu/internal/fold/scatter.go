package fold

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// Joins are the loops by which a scatter's values join the indexed elements, for one way to
// combine.
type Joins struct {
	// Each joins value k to element at[k]+k*step of base, in order. It skips value k if at[k] is
	// negative.
	Each func(base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer)
	// along joins n values to n neighbours.
	along func(to, values unsafe.Pointer, n int64)
	// code returns machine code that does the same as along; nil if there is none.
	code func() *machineFold
}

// scatterInto fills in the joins of all dtypes.
func scatterInto(f *Table, soft bool, j32 func(ir.Op) joins[float32], j64 func(ir.Op) joins[float64]) {
	scatterPlain[uint8](f, ir.Bool)
	scatterPlain[uint8](f, intDType[uint8]())
	scatterPlain[uint16](f, intDType[uint16]())
	scatterPlain[uint32](f, intDType[uint32]())
	scatterPlain[uint64](f, intDType[uint64]())
	scatterPlain[int8](f, intDType[int8]())
	scatterPlain[int16](f, intDType[int16]())
	scatterPlain[int32](f, intDType[int32]())
	scatterPlain[int64](f, intDType[int64]())
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
func scatterPlain[T stored](f *Table, dt ir.DType) {
	f.DTypes[dt].Joins = [ir.NumCombines]Joins{
		ir.CombineSet: {Each: setEach[T], along: copyAlong[T]},
		ir.CombineAdd: {Each: plusEach[T], along: alongBy(plusInto[T])},
		ir.CombineMul: {Each: timesEach[T], along: alongBy(timesInto[T])},
		ir.CombineMax: {Each: largerEach[T], along: alongBy(largerInto[T])},
		ir.CombineMin: {Each: smallerEach[T], along: alongBy(smallerInto[T])},
	}
}

func alongBy[T stored](into func(to, from []T)) func(to, values unsafe.Pointer, n int64) {
	return func(to, values unsafe.Pointer, n int64) {
		into(memory.Elements[T](to, n), memory.Elements[T](values, n))
	}
}

func copyAlong[T stored](to, values unsafe.Pointer, n int64) {
	copy(memory.Elements[T](to, n), memory.Elements[T](values, n))
}

// scatterBy fills in a dtype E that is computed as T.
func scatterBy[E stored, T computing](f *Table, dt ir.DType, widen func(E) T, narrow func(T) E, joinsOf func(ir.Op) joins[T]) {
	f.DTypes[dt].Joins[ir.CombineSet] = Joins{Each: setEach[E], along: copyAlong[E]}
	for how := ir.CombineSet + 1; how < ir.NumCombines; how++ {
		one := joinsOf(how.Op()).one
		join := func(to *E, x E) { *to = narrow(one(widen(*to), widen(x))) }
		f.DTypes[dt].Joins[how] = Joins{
			Each: func(base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
				for k, x := range memory.Elements[E](values, int64(len(at))) {
					if at[k] >= 0 {
						join(memory.At[E](base, at[k]+int64(k)*step), x)
					}
				}
			},
			along: func(to, values unsafe.Pointer, n int64) {
				list := memory.Elements[E](to, n)
				for k, x := range memory.Elements[E](values, n) {
					join(&list[k], x)
				}
			},
		}
	}
}

func setEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range memory.Elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			*memory.At[T](base, at[k]+int64(k)*step) = x
		}
	}
}

func plusEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range memory.Elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			*memory.At[T](base, at[k]+int64(k)*step) += x
		}
	}
}

func timesEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range memory.Elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			to := memory.At[T](base, at[k]+int64(k)*step)
			*to = T(*to * x)
		}
	}
}

func largerEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range memory.Elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			to := memory.At[T](base, at[k]+int64(k)*step)
			*to = max(*to, x)
		}
	}
}

func smallerEach[T stored](base unsafe.Pointer, at []int64, step int64, values unsafe.Pointer) {
	for k, x := range memory.Elements[T](values, int64(len(at))) {
		if at[k] >= 0 {
			to := memory.At[T](base, at[k]+int64(k)*step)
			*to = min(*to, x)
		}
	}
}
