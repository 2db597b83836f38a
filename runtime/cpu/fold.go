package cpu

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// folded is a part of a fold: bits in the dtype that computes, or a sort key
// and the position where it was found.
type folded struct {
	bits uint64
	at   int64
}

// rowDType does row ops on one dtype, in Go.
type rowDType struct {
	// block folds n elements of a buffer from the first on, at most a block,
	// in the fixed order; row counts those of the row that came before.
	block func(op ir.Op, values unsafe.Pointer, first, n, row int64) folded
	// join takes the next block into the total.
	join func(op ir.Op, total, next folded) folded
	// result is what is stored of a fold.
	result func(op ir.Op, total folded) uint64
	// scan writes the results of a row of n elements to out.
	scan func(op ir.Op, out, values unsafe.Pointer, n int64)
	// into joins values to elements of base, value k to the one at[k] from it, in
	// order; to none where at[k] is negative.
	into func(how ir.Combine, base unsafe.Pointer, at []int64, values unsafe.Pointer)
	// sort gives the order of a row of n elements.
	sort func(values unsafe.Pointer, n int64, descending bool) []int64
}

type computing interface {
	uint8 | int32 | int64 | uint32 | uint64 | float32 | float64
}

type stored interface {
	computing | int8 | int16 | uint16
}

// rowDTypes has a row per dtype: a storage dtype says how its elements get to
// the dtype that computes and back.
var rowDTypes = rowTable(joinBy[float32], joinBy[float64])

// softRowDTypes are those of programs that flush denormals in software.
var softRowDTypes = rowTable(
	flushJoins(ir.FlushAdd32, ir.FlushMul32, ir.Flush32), flushJoins(ir.FlushAdd64, ir.FlushMul64, ir.Flush64))

// rowsOf has the program's ops on rows of a dtype.
func (p *program) rowsOf(dt ir.DType) *rowDType {
	if p.soft {
		return &softRowDTypes[dt]
	}
	return &rowDTypes[dt]
}

func rowTable(join32 func(ir.Op) func(a, b float32) float32, join64 func(ir.Op) func(a, b float64) float64) [ir.NumDTypes]rowDType {
	return [ir.NumDTypes]rowDType{
		ir.Bool:     rowsOf(ir.Bool, same[uint8], same[uint8], bits8, from8, joinBy[uint8]),
		ir.Uint8:    rowsOf(ir.Uint8, same[uint8], same[uint8], bits8, from8, joinBy[uint8]),
		ir.Int32:    rowsOf(ir.Int32, same[int32], same[int32], bits32[int32], from32[int32], joinBy[int32]),
		ir.Int64:    rowsOf(ir.Int64, same[int64], same[int64], bits64[int64], from64[int64], joinBy[int64]),
		ir.Uint32:   rowsOf(ir.Uint32, same[uint32], same[uint32], bits32[uint32], from32[uint32], joinBy[uint32]),
		ir.Uint64:   rowsOf(ir.Uint64, same[uint64], same[uint64], bits64[uint64], from64[uint64], joinBy[uint64]),
		ir.Float32:  rowsOf(ir.Float32, same[float32], same[float32], bitsF32, fromF32, join32),
		ir.Float64:  rowsOf(ir.Float64, same[float64], same[float64], math.Float64bits, math.Float64frombits, join64),
		ir.Int8:     rowsOf(ir.Int8, convert[int8, int32], convert[int32, int8], bits32[int32], from32[int32], joinBy[int32]),
		ir.Int16:    rowsOf(ir.Int16, convert[int16, int32], convert[int32, int16], bits32[int32], from32[int32], joinBy[int32]),
		ir.Uint16:   rowsOf(ir.Uint16, convert[uint16, int32], convert[int32, uint16], bits32[int32], from32[int32], joinBy[int32]),
		ir.Float16:  rowsOf(ir.Float16, widenFloat(ir.Float16), narrowFloat(ir.Float16), bitsF32, fromF32, join32),
		ir.BFloat16: rowsOf(ir.BFloat16, widenFloat(ir.BFloat16), narrowFloat(ir.BFloat16), bitsF32, fromF32, join32),
	}
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

// joinBy is an op on two elements that folds, scans or scatters join them by.
func joinBy[T computing](op ir.Op) func(a, b T) T {
	switch op {
	case ir.Add:
		return plus[T]
	case ir.Mul:
		return times[T]
	case ir.Maximum, ir.Or:
		return larger[T]
	}
	return smaller[T]
}

// flushJoins is joinBy of floats where denormals are flushed.
func flushJoins[T float32 | float64](plus, times func(a, b T) T, flush func(T) T) func(ir.Op) func(a, b T) T {
	return func(op ir.Op) func(a, b T) T {
		switch op {
		case ir.Add:
			return plus
		case ir.Mul:
			return times
		case ir.Maximum:
			return func(a, b T) T { return max(flush(a), flush(b)) }
		}
		return func(a, b T) T { return min(flush(a), flush(b)) }
	}
}

// rowsOf are the row ops of a dtype with elements E, computed as T, which joinBy
// joins.
func rowsOf[E stored, T computing](dt ir.DType, widen func(E) T, narrow func(T) E, bits func(T) uint64, from func(uint64) T, joinBy func(ir.Op) func(a, b T) T) rowDType {
	joinOf := func(op ir.Op) func(a, b T) T { return joinBy(op.Info().Combine) }
	key := func(x E, reversed bool) uint64 { return ir.SortKey(dt.Compute(), bits(widen(x)), reversed) }
	return rowDType{
		block: func(op ir.Op, values unsafe.Pointer, first, n, row int64) folded {
			v := elements[E](values, first+n)[first:]
			if op.Info().Position {
				best := folded{at: row, bits: key(v[0], op == ir.ArgMin)}
				for i, x := range v {
					if k := key(x, op == ir.ArgMin); k > best.bits {
						best = folded{k, row + int64(i)}
					}
				}
				return best
			}
			join := joinOf(op)
			var lanes [ir.FoldLanes]T
			start := from(ir.FoldStart(op, dt.Compute()))
			for l := range lanes {
				lanes[l] = start
			}
			for len(v) > 0 {
				part := v[:min(len(v), ir.FoldLanes)]
				for l, x := range part {
					lanes[l] = join(lanes[l], widen(x))
				}
				v = v[len(part):]
			}
			for w := ir.FoldLanes / 2; w > 0; w /= 2 {
				for l := range w {
					lanes[l] = join(lanes[l], lanes[l+w])
				}
			}
			return folded{bits: bits(lanes[0])}
		},
		join: func(op ir.Op, total, next folded) folded {
			if op.Info().Position {
				if next.bits > total.bits {
					return next
				}
				return total
			}
			return folded{bits: bits(joinOf(op)(from(total.bits), from(next.bits)))}
		},
		result: func(op ir.Op, total folded) uint64 {
			if op.Info().Position {
				return uint64(total.at)
			}
			if !dt.Storage() {
				return total.bits
			}
			x := narrow(from(total.bits))
			return element(unsafe.Pointer(&x), int32(unsafe.Sizeof(x)))
		},
		scan: func(op ir.Op, out, values unsafe.Pointer, n int64) {
			join := joinOf(op)
			to := elements[E](out, n)
			var running, offset, joined T
			for i, x := range elements[E](values, n) {
				if i%ir.ScanBlock == 0 {
					offset, running = joined, widen(x)
				} else {
					running = join(running, widen(x))
				}
				if joined = running; i >= ir.ScanBlock {
					joined = join(offset, running)
				}
				to[i] = narrow(joined)
			}
		},
		into: func(how ir.Combine, base unsafe.Pointer, at []int64, values unsafe.Pointer) {
			join := joinBy(how.Op())
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
		},
		sort: func(values unsafe.Pointer, n int64, descending bool) []int64 {
			keys, order := make([]uint64, n), make([]int64, n)
			for i, x := range elements[E](values, n) {
				keys[i], order[i] = key(x, descending), int64(i)
			}
			slices.SortStableFunc(order, func(i, j int64) int { return cmp.Compare(keys[i], keys[j]) })
			return order
		},
	}
}
