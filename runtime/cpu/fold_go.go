package cpu

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

type computing interface {
	uint8 | int32 | int64 | uint32 | uint64 | float32 | float64
}

type stored interface {
	computing | int8 | int16 | uint16
}

// joins is an op on two elements that folds, scans or scatters join them by: of two, and
// of as many as there are in to, whose place the results take.
type joins[T computing] struct {
	start T // changes no element
	one   func(a, b T) T
	into  func(to, from []T)
	// first is into where to held start.
	first func(to, from []T)
}

func newFolds(soft bool) *foldTable {
	f := &foldTable{}
	j32, j64 := plainJoins[float32], plainJoins[float64]
	if soft {
		j32 = flushJoins(ir.FlushAdd32, ir.FlushMul32, ir.Flush32)
		j64 = flushJoins(ir.FlushAdd64, ir.FlushMul64, ir.Flush64)
	}
	foldsOf(f, ir.Bool, from8, plainJoins[uint8])
	foldsOf(f, ir.Uint8, from8, plainJoins[uint8])
	foldsOf(f, ir.Int32, from32[int32], plainJoins[int32])
	foldsOf(f, ir.Int64, from64[int64], plainJoins[int64])
	foldsOf(f, ir.Uint32, from32[uint32], plainJoins[uint32])
	foldsOf(f, ir.Uint64, from64[uint64], plainJoins[uint64])
	foldsOf(f, ir.Float32, fromF32, j32)
	foldsOf(f, ir.Float64, math.Float64frombits, j64)

	rowsOf(f, ir.Bool, same[uint8], same[uint8], bits8, plainJoins[uint8])
	rowsOf(f, ir.Uint8, same[uint8], same[uint8], bits8, plainJoins[uint8])
	rowsOf(f, ir.Int32, same[int32], same[int32], bits32[int32], plainJoins[int32])
	rowsOf(f, ir.Int64, same[int64], same[int64], bits64[int64], plainJoins[int64])
	rowsOf(f, ir.Uint32, same[uint32], same[uint32], bits32[uint32], plainJoins[uint32])
	rowsOf(f, ir.Uint64, same[uint64], same[uint64], bits64[uint64], plainJoins[uint64])
	rowsOf(f, ir.Float32, same[float32], same[float32], bitsF32, j32)
	rowsOf(f, ir.Float64, same[float64], same[float64], math.Float64bits, j64)
	rowsOf(f, ir.Int8, convert[int8, int32], convert[int32, int8], bits32[int32], plainJoins[int32])
	rowsOf(f, ir.Int16, convert[int16, int32], convert[int32, int16], bits32[int32], plainJoins[int32])
	rowsOf(f, ir.Uint16, convert[uint16, int32], convert[int32, uint16], bits32[int32], plainJoins[int32])
	rowsOf(f, ir.Float16, widenFloat(ir.Float16), narrowFloat(ir.Float16), bitsF32, j32)
	rowsOf(f, ir.BFloat16, widenFloat(ir.BFloat16), narrowFloat(ir.BFloat16), bitsF32, j32)
	return f
}

func same[T any](x T) T { return x }

func convert[A, B int8 | int16 | uint16 | int32](x A) B { return B(x) }

func widenFloat(dt ir.DType) func(uint16) float32 {
	return func(x uint16) float32 { return float32(ir.BitsFloat(dt, uint64(x))) }
}

func narrowFloat(dt ir.DType) func(float32) uint16 {
	return func(x float32) uint16 { return uint16(ir.FloatBits(dt, float64(x))) }
}

func bits8(x uint8) uint64                          { return uint64(x) }
func from8(b uint64) uint8                          { return uint8(b) }
func bits32[T int32 | uint32](x T) uint64           { return uint64(uint32(x)) }
func from32[T int32 | uint32](b uint64) T           { return T(uint32(b)) }
func bits64[T int64 | uint64](x T) uint64           { return uint64(x) }
func from64[T int64 | uint64](b uint64) T           { return T(b) }
func bitsF32(x float32) uint64                      { return uint64(math.Float32bits(x)) }
func fromF32(b uint64) float32                      { return math.Float32frombits(uint32(b)) }
func plus[T computing](a, b T) T                    { return a + b }
func times[T computing](a, b T) T                   { return T(a * b) }
func larger[T computing](a, b T) T                  { return max(a, b) } // Go's max is Maximum: NaN wins, -0 is below +0
func smaller[T computing](a, b T) T                 { return min(a, b) }
func elements[T any](p unsafe.Pointer, n int64) []T { return unsafe.Slice((*T)(p), n) }

// Loops over the builtin operations, which calls of a function for each element are not.

func plusInto[T computing](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] += x
	}
}

func timesInto[T computing](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] = T(to[i] * x)
	}
}

func largerInto[T computing](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] = max(to[i], x)
	}
}

func smallerInto[T computing](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] = min(to[i], x)
	}
}

func copyInto[T computing](to, from []T) { copy(to, from[:len(to)]) }

func plainJoins[T computing](op ir.Op) joins[T] {
	switch op {
	case ir.Add:
		return joins[T]{one: plus[T], into: plusInto[T], first: copyInto[T]}
	case ir.Mul:
		return joins[T]{one: times[T], into: timesInto[T], first: copyInto[T]}
	case ir.Maximum, ir.Or:
		return joins[T]{one: larger[T], into: largerInto[T], first: copyInto[T]}
	}
	return joins[T]{one: smaller[T], into: smallerInto[T], first: copyInto[T]}
}

// flushJoins is joins of floats where denormals are flushed.
func flushJoins[T float32 | float64](plus, times func(a, b T) T, flush func(T) T) func(ir.Op) joins[T] {
	return func(op ir.Op) (j joins[T]) {
		switch op {
		case ir.Add:
			j.one = plus
		case ir.Mul:
			j.one = times
		case ir.Maximum:
			j.one = func(a, b T) T { return max(flush(a), flush(b)) }
		default:
			j.one = func(a, b T) T { return min(flush(a), flush(b)) }
		}
		j.into = func(to, from []T) {
			for i := range to {
				to[i] = j.one(to[i], from[i])
			}
		}
		j.first = func(to, from []T) {
			for i := range to {
				to[i] = flush(from[i])
			}
		}
		return j
	}
}

// foldsOf fills in the folders of a dtype that computes.
func foldsOf[T computing](f *foldTable, dt ir.DType, from func(uint64) T, joinsOf func(ir.Op) joins[T]) {
	for op, row := range map[foldOp]ir.Op{foldSum: ir.Sum, foldProd: ir.Prod, foldMax: ir.Max, foldMin: ir.Min} {
		j := joinsOf(row.Info().Combine)
		j.start = from(ir.FoldStart(row, dt))
		f.fold[op][dt] = newFolder(j)
	}
	bits := func(x T) uint64 { return element(unsafe.Pointer(&x), int32(unsafe.Sizeof(x))) }
	f.fold[foldArgMax][dt] = argFolder(func(x T) uint64 { return ir.SortKey(dt, bits(x), false) })
	f.fold[foldArgMin][dt] = argFolder(func(x T) uint64 { return ir.SortKey(dt, bits(x), true) })
}

func newFolder[T computing](j joins[T]) folder {
	size := int64(unsafe.Sizeof(j.start))
	return folder{
		size: size, lanes: ir.FoldLanes,
		start: func(acc unsafe.Pointer) {
			for i := range elements[T](acc, ir.FoldLanes) {
				elements[T](acc, ir.FoldLanes)[i] = j.start
			}
		},
		add: func(acc, values unsafe.Pointer, r, m, n, ld int64) {
			if n > 1 {
				for i := range m {
					at := (r + i) % ir.FoldBlock
					lane := elements[T](unsafe.Add(acc, at%ir.FoldLanes*n*size), n)
					v := elements[T](unsafe.Add(values, i*ld*size), n)
					if at < ir.FoldLanes {
						j.first(lane, v)
					} else {
						j.into(lane, v)
					}
				}
				return
			}
			lanes := elements[T](acc, ir.FoldLanes)
			if ld != 1 { // of a row that is read backwards, say
				for i := range m {
					lane := &lanes[(r+i)%ir.FoldLanes]
					*lane = j.one(*lane, *(*T)(unsafe.Add(values, i*ld*size)))
				}
				return
			}
			for v := elements[T](values, m); len(v) > 0; {
				to := lanes[r%ir.FoldLanes:]
				to = to[:min(len(to), len(v))]
				j.into(to, v)
				r, v = r+int64(len(to)), v[len(to):]
			}
		},
		finish: func(acc unsafe.Pointer, elems, n int64) {
			// Lanes without an element change nothing, so they are left out.
			used := min(elems, ir.FoldLanes)
			a := elements[T](acc, used*n)
			for w := int64(ir.FoldLanes / 2); w > 0 && used > 1; w /= 2 {
				if used > w {
					j.into(a[:(used-w)*n], a[w*n:])
					used = w
				}
			}
		},
		combine: func(total, block unsafe.Pointer, n int64) { j.into(elements[T](total, n), elements[T](block, n)) },
		result: func(out unsafe.Pointer, _ int64, total unsafe.Pointer, n int64) {
			copy(elements[T](out, n), elements[T](total, n))
		},
		scan: func(out, values, run, offset unsafe.Pointer, r, m, n int64) {
			if n == 1 {
				scanRow(j.one, elements[T](out, m), elements[T](values, m), (*T)(run), (*T)(offset), r)
				return
			}
			x, off := elements[T](run, n), elements[T](offset, n)
			for i := r; i < r+m; i++ {
				to, v := elements[T](unsafe.Add(out, (i-r)*n*size), n), elements[T](unsafe.Add(values, (i-r)*n*size), n)
				switch {
				case i == 0:
				case i == ir.ScanBlock:
					copy(off, x)
				case i%ir.ScanBlock == 0:
					j.into(off, x)
				}
				if i%ir.ScanBlock == 0 {
					copy(x, v)
				} else {
					j.into(x, v)
				}
				if i < ir.ScanBlock {
					copy(to, x)
				} else {
					copy(to, off)
					j.into(to, x)
				}
			}
		},
	}
}

// scanRow scans elements from number r on of a row.
func scanRow[T computing](join func(a, b T) T, to, v []T, run, offset *T, r int64) {
	x, off := *run, *offset
	for k, y := range v {
		i := r + int64(k)
		if i%ir.ScanBlock == 0 {
			if i == ir.ScanBlock {
				off = x
			} else if i > 0 {
				off = join(off, x)
			}
			x = y
		} else {
			x = join(x, y)
		}
		if to[k] = x; i >= ir.ScanBlock {
			to[k] = join(off, x)
		}
	}
	*run, *offset = x, off
}

// argFolder says where the greatest key of a row is. An accumulator of n columns is
// their keys, then their positions. Ties go to the lowest position, so the order of
// joining does not matter.
func argFolder[T computing](key func(T) uint64) folder {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	return folder{
		size: 16, lanes: 1,
		start: func(unsafe.Pointer) {},
		add: func(acc, values unsafe.Pointer, r, m, n, ld int64) {
			keys, places := elements[uint64](acc, n), elements[int64](unsafe.Add(acc, 8*n), n)
			for i := r; i < r+m; i++ {
				first := i%ir.FoldBlock == 0 // of a block, which takes the place without a fight
				for j, x := range elements[T](unsafe.Add(values, (i-r)*ld*size), n) {
					if k := key(x); first || k > keys[j] {
						keys[j], places[j] = k, i
					}
				}
			}
		},
		finish: func(unsafe.Pointer, int64, int64) {},
		combine: func(total, block unsafe.Pointer, n int64) {
			keys, places := elements[uint64](total, n), elements[int64](unsafe.Add(total, 8*n), n)
			other, theirs := elements[uint64](block, n), elements[int64](unsafe.Add(block, 8*n), n)
			for j := range keys {
				if other[j] > keys[j] {
					keys[j], places[j] = other[j], theirs[j]
				}
			}
		},
		result: func(out unsafe.Pointer, size int64, total unsafe.Pointer, n int64) {
			for j, at := range elements[int64](unsafe.Add(total, 8*n), n) {
				storeElement(unsafe.Add(out, int64(j)*size), int32(size), uint64(at))
			}
		},
	}
}

// rowsOf fills in a dtype with elements E, computed as T.
func rowsOf[E stored, T computing](f *foldTable, dt ir.DType, widen func(E) T, narrow func(T) E, bits func(T) uint64, joinsOf func(ir.Op) joins[T]) {
	d := &f.dtype[dt]
	d.size, d.compute = int64(dt.Size()), int64(dt.Compute())
	if dt.Storage() {
		d.widen = func(to, from unsafe.Pointer, n int64) {
			for i, x := range elements[E](from, n) {
				elements[T](to, n)[i] = widen(x)
			}
		}
		d.narrow = func(to, from unsafe.Pointer, n int64) {
			for i, x := range elements[T](from, n) {
				elements[E](to, n)[i] = narrow(x)
			}
		}
	}
	d.key = func(values unsafe.Pointer, i int64, descending bool) uint64 {
		return ir.SortKey(dt.Compute(), bits(widen(elements[E](values, i+1)[i])), descending)
	}
	var ones [ir.NumCombines]func(a, b T) T
	for how := ir.CombineSet + 1; how < ir.NumCombines; how++ {
		ones[how] = joinsOf(how.Op()).one
	}
	d.into = func(how ir.Combine, base unsafe.Pointer, at []int64, values unsafe.Pointer) {
		join := ones[how]
		for k, x := range elements[E](values, int64(len(at))) {
			if at[k] < 0 {
				continue
			}
			to := (*E)(unsafe.Add(base, at[k]*int64(unsafe.Sizeof(x))))
			if how != ir.CombineSet {
				x = narrow(join(widen(*to), widen(x)))
			}
			*to = x
		}
	}
}

// storeElement writes an element of so many bytes.
func storeElement(p unsafe.Pointer, size int32, bits uint64) {
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
