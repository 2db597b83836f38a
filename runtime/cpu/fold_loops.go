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

// joins is an op that folds, scans or scatters use to join elements: two at a time, or slices,
// whose results replace the elements of to.
type joins[T computing] struct {
	start T // neutral element
	one   func(a, b T) T
	into  func(to, from []T)
	// first is into for a to that holds start.
	first   func(to, from []T)
	flushes bool // flushes denormals
}

func newFolds(soft bool) *foldTable {
	f := &foldTable{}
	j32, j64 := plainJoins[float32], plainJoins[float64]
	if soft {
		j32, j64 = flushJoins32, flushJoins64
	}
	foldsOf(f, ir.Bool, from8, plainJoins[uint8])
	foldsOf(f, ir.Uint8, from8, plainJoins[uint8])
	foldsOf(f, ir.Int32, from32[int32], plainJoins[int32])
	foldsOf(f, ir.Int64, from64[int64], plainJoins[int64])
	foldsOf(f, ir.Uint32, from32[uint32], plainJoins[uint32])
	foldsOf(f, ir.Uint64, from64[uint64], plainJoins[uint64])
	foldsOf(f, ir.Float32, fromF32, j32)
	foldsOf(f, ir.Float64, math.Float64frombits, j64)

	rowsOf(f, ir.Bool, same[uint8], same[uint8])
	rowsOf(f, ir.Uint8, same[uint8], same[uint8])
	rowsOf(f, ir.Int32, same[int32], same[int32])
	rowsOf(f, ir.Int64, same[int64], same[int64])
	rowsOf(f, ir.Uint32, same[uint32], same[uint32])
	rowsOf(f, ir.Uint64, same[uint64], same[uint64])
	rowsOf(f, ir.Float32, same[float32], same[float32])
	rowsOf(f, ir.Float64, same[float64], same[float64])
	rowsOf(f, ir.Int8, convert[int8, int32], convert[int32, int8])
	rowsOf(f, ir.Int16, convert[int16, int32], convert[int32, int16])
	rowsOf(f, ir.Uint16, convert[uint16, int32], convert[int32, uint16])
	rowsOf(f, ir.Float16, widenFloat16, narrowFloat16)
	rowsOf(f, ir.BFloat16, widenBFloat16, narrowBFloat16)
	scatterInto(f, soft, j32, j64)
	return f
}

func same[T any](x T) T { return x }

func convert[A, B int8 | int16 | uint16 | int32](x A) B { return B(x) }

func from8(b uint64) uint8                          { return uint8(b) }
func from32[T int32 | uint32](b uint64) T           { return T(uint32(b)) }
func from64[T int64 | uint64](b uint64) T           { return T(b) }
func fromF32(b uint64) float32                      { return math.Float32frombits(uint32(b)) }
func plus[T computing](a, b T) T                    { return a + b }
func times[T computing](a, b T) T                   { return T(a * b) }
func larger[T computing](a, b T) T                  { return max(a, b) } // Go's max is Maximum: NaN wins, -0 is below +0
func smaller[T computing](a, b T) T                 { return min(a, b) }
func elements[T any](p unsafe.Pointer, n int64) []T { return unsafe.Slice((*T)(p), n) }

// Loops with builtin operations are faster than calls of a function for each element.

func plusInto[T stored](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] += x
	}
}

func timesInto[T stored](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] = T(to[i] * x)
	}
}

func largerInto[T stored](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] = max(to[i], x)
	}
}

func smallerInto[T stored](to, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] = min(to[i], x)
	}
}

func copyInto[T stored](to, from []T) { copy(to, from[:len(to)]) }

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

var (
	flushJoins32 = flushJoins(ir.FlushAdd32, ir.FlushMul32, ir.Flush32)
	flushJoins64 = flushJoins(ir.FlushAdd64, ir.FlushMul64, ir.Flush64)
)

// flushJoins is joins for floats with flushed denormals.
func flushJoins[T float32 | float64](plus, times func(a, b T) T, flush func(T) T) func(ir.Op) joins[T] {
	return func(op ir.Op) (j joins[T]) {
		j.flushes = true
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

// foldsOf fills in the folders of a compute dtype.
func foldsOf[T computing](f *foldTable, dt ir.DType, from func(uint64) T, joinsOf func(ir.Op) joins[T]) {
	for op, row := range map[foldOp]ir.Op{foldSum: ir.Sum, foldProd: ir.Prod, foldMax: ir.Max, foldMin: ir.Min} {
		j := joinsOf(row.Info().Combine)
		j.start = from(ir.FoldStart(row, dt))
		sc := plainScans[T](row.Info().Combine)
		if j.flushes {
			sc = scansBy(j.one)
		}
		f.fold[op][dt] = newFolder(j, sc)
	}
	for op, least := range map[foldOp]bool{foldArgMax: false, foldArgMin: true} {
		switch dt.Size() {
		case 1:
			f.fold[op][dt] = argFolder[uint8](dt, least)
		case 4:
			f.fold[op][dt] = argFolder[uint32](dt, least)
		default:
			f.fold[op][dt] = argFolder[uint64](dt, least)
		}
	}
}

func newFolder[T computing](j joins[T], sc scans[T]) folder {
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
			if ld != 1 { // for example a row that is read backwards
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
			// Lanes without an element hold the neutral element, so they are skipped.
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
		scan: scanOf(sc, j.into),
	}
}

// rowsOf fills in a dtype with elements E, computed as T.
func rowsOf[E stored, T computing](f *foldTable, dt ir.DType, widen func(E) T, narrow func(T) E) {
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
}

// storeElement writes an element of size bytes.
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
