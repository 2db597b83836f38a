package fold

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
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

func newTable(soft bool) *Table {
	f := &Table{}
	j32, j64 := plainJoins[float32], plainJoins[float64]
	if soft {
		j32, j64 = flushJoins32, flushJoins64
	}
	folderOf(f, ir.Bool, from8, plainJoins[uint8])
	folderOf(f, ir.Uint8, from8, plainJoins[uint8])
	folderOf(f, ir.Int32, from32[int32], plainJoins[int32])
	folderOf(f, ir.Int64, from64[int64], plainJoins[int64])
	folderOf(f, ir.Uint32, from32[uint32], plainJoins[uint32])
	folderOf(f, ir.Uint64, from64[uint64], plainJoins[uint64])
	folderOf(f, ir.Float32, fromF32, j32)
	folderOf(f, ir.Float64, math.Float64frombits, j64)

	rowsOf(f, ir.Bool, same[uint8], same[uint8])
	rowsOf(f, ir.Uint8, same[uint8], same[uint8])
	rowsOf(f, ir.Int32, same[int32], same[int32])
	rowsOf(f, ir.Int64, same[int64], same[int64])
	rowsOf(f, ir.Uint32, same[uint32], same[uint32])
	rowsOf(f, ir.Uint64, same[uint64], same[uint64])
	rowsOf(f, ir.Float32, same[float32], same[float32])
	rowsOf(f, ir.Float64, same[float64], same[float64])
	narrowInt[int8](f)
	narrowInt[int16](f)
	narrowInt[uint16](f)
	scatterInto(f, soft, j32, j64)
	storedFloats(f, j32)
	return f
}

func same[T any](x T) T { return x }

func convert[A, B int8 | int16 | uint16 | int32](x A) B { return B(x) }

// narrowInt fills in the rows of an integer type that is computed as int32.
func narrowInt[E int8 | int16 | uint16](f *Table) {
	rowsOf(f, intDType[E](), convert[E, int32], convert[int32, E])
}

// intDType is the dtype of a Go integer type.
func intDType[E stored]() ir.DType {
	var zero E
	return ir.IntOf(int(unsafe.Sizeof(zero)), zero-1 < zero)
}

func from8(b uint64) uint8                { return uint8(b) }
func from32[T int32 | uint32](b uint64) T { return T(uint32(b)) }
func from64[T int64 | uint64](b uint64) T { return T(b) }
func fromF32(b uint64) float32            { return math.Float32frombits(uint32(b)) }
func plus[T computing](a, b T) T          { return a + b }
func times[T computing](a, b T) T         { return T(a * b) }
func larger[T computing](a, b T) T        { return max(a, b) } // Go's max is Maximum: NaN wins, -0 is below +0
func smaller[T computing](a, b T) T       { return min(a, b) }

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

// folderOf fills in the folders of a compute dtype.
func folderOf[T computing](f *Table, dt ir.DType, from func(uint64) T, joinsOf func(ir.Op) joins[T]) {
	for op, row := range RowOps {
		j := joinsOf(row.Info().Combine)
		j.start = from(ir.FoldStart(row, dt))
		sc := plainScans[T](row.Info().Combine)
		if j.flushes {
			sc = scansBy(j.one)
		}
		f.folders[op][dt] = newFolder(j, sc)
	}
	for op, least := range map[Op]bool{ArgMax: false, ArgMin: true} {
		switch dt.Size() {
		case 1:
			f.folders[op][dt] = argFolder[uint8](dt, least)
		case 4:
			f.folders[op][dt] = argFolder[uint32](dt, least)
		default:
			f.folders[op][dt] = argFolder[uint64](dt, least)
		}
	}
}

func newFolder[T computing](j joins[T], sc scans[T]) Folder {
	size := int64(unsafe.Sizeof(j.start))
	return Folder{
		Size: size, Lanes: ir.FoldLanes,
		Start: func(acc unsafe.Pointer) {
			for i := range memory.Elements[T](acc, ir.FoldLanes) {
				memory.Elements[T](acc, ir.FoldLanes)[i] = j.start
			}
		},
		Add: func(acc, values unsafe.Pointer, r, m, n, ld int64) {
			if n > 1 {
				for i := range m {
					at := (r + i) % ir.FoldBlock
					lane := memory.Elements[T](unsafe.Add(acc, at%ir.FoldLanes*n*size), n)
					v := memory.Elements[T](unsafe.Add(values, i*ld*size), n)
					if at < ir.FoldLanes {
						j.first(lane, v)
					} else {
						j.into(lane, v)
					}
				}
				return
			}
			lanes := memory.Elements[T](acc, ir.FoldLanes)
			if ld != 1 { // for example a row that is read backwards
				for i := range m {
					lane := &lanes[(r+i)%ir.FoldLanes]
					*lane = j.one(*lane, *(*T)(unsafe.Add(values, i*ld*size)))
				}
				return
			}
			for v := memory.Elements[T](values, m); len(v) > 0; {
				to := lanes[r%ir.FoldLanes:]
				to = to[:min(len(to), len(v))]
				j.into(to, v)
				r, v = r+int64(len(to)), v[len(to):]
			}
		},
		Finish: func(acc unsafe.Pointer, elems, n int64) {
			// Lanes without an element hold the neutral element, so they are skipped.
			used := min(elems, ir.FoldLanes)
			a := memory.Elements[T](acc, used*n)
			for w := int64(ir.FoldLanes / 2); w > 0 && used > 1; w /= 2 {
				if used > w {
					j.into(a[:(used-w)*n], a[w*n:])
					used = w
				}
			}
		},
		Combine: func(total, block unsafe.Pointer, n int64) {
			j.into(memory.Elements[T](total, n), memory.Elements[T](block, n))
		},
		Result: func(out unsafe.Pointer, _ int64, total unsafe.Pointer, n int64) {
			copy(memory.Elements[T](out, n), memory.Elements[T](total, n))
		},
		Scan: scanOf(sc, j.into),
	}
}

// rowsOf fills in a dtype with elements E, computed as T.
func rowsOf[E stored, T computing](f *Table, dt ir.DType, widen func(E) T, narrow func(T) E) {
	d := &f.DTypes[dt]
	d.Size, d.compute = int64(dt.Size()), int64(dt.Compute())
	if dt.Storage() {
		d.Widen = func(to, from unsafe.Pointer, n int64) {
			for i, x := range memory.Elements[E](from, n) {
				memory.Elements[T](to, n)[i] = widen(x)
			}
		}
		d.Narrow = func(to, from unsafe.Pointer, n int64) {
			for i, x := range memory.Elements[T](from, n) {
				memory.Elements[E](to, n)[i] = narrow(x)
			}
		}
	}
}
