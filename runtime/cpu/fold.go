package cpu

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// folding is a reduction of one dtype, on bits.
type folding struct {
	// block folds values [first, first+n) of a buffer, at most a block, in the
	// fixed order.
	block   func(values unsafe.Pointer, first, n int64) uint64
	combine func(a, b uint64) uint64
}

type foldKey struct {
	op ir.Op
	dt ir.DType
}

var foldings = map[foldKey]folding{
	{ir.Sum, ir.Uint8}:   fold(0, add[uint8], bits8, from8),
	{ir.Sum, ir.Int32}:   fold(0, add[uint32], bits32, from32),
	{ir.Sum, ir.Int64}:   fold(0, add[uint64], bits64, from64),
	{ir.Sum, ir.Uint32}:  fold(0, add[uint32], bits32, from32),
	{ir.Sum, ir.Uint64}:  fold(0, add[uint64], bits64, from64),
	{ir.Sum, ir.Float32}: fold(float32(math.Copysign(0, -1)), add[float32], math.Float32bits, math.Float32frombits),
	{ir.Sum, ir.Float64}: fold(math.Copysign(0, -1), add[float64], math.Float64bits, math.Float64frombits),
	{ir.Max, ir.Uint8}:   fold(0, larger[uint8], bits8, from8),
	{ir.Max, ir.Int32}:   fold(math.MinInt32, larger[int32], func(x int32) uint32 { return uint32(x) }, func(b uint32) int32 { return int32(b) }),
	{ir.Max, ir.Int64}:   fold(math.MinInt64, larger[int64], func(x int64) uint64 { return uint64(x) }, func(b uint64) int64 { return int64(b) }),
	{ir.Max, ir.Uint32}:  fold(0, larger[uint32], bits32, from32),
	{ir.Max, ir.Uint64}:  fold(0, larger[uint64], bits64, from64),
	// Go's max propagates NaN and has -0 below +0, as Maximum does.
	{ir.Max, ir.Float32}: fold(float32(math.Inf(-1)), larger[float32], math.Float32bits, math.Float32frombits),
	{ir.Max, ir.Float64}: fold(math.Inf(-1), larger[float64], math.Float64bits, math.Float64frombits),
}

type number interface {
	uint8 | int32 | int64 | uint32 | uint64 | float32 | float64
}

func add[T number](a, b T) T    { return a + b }
func larger[T number](a, b T) T { return max(a, b) }

func bits8(x uint8) uint8    { return x }
func from8(b uint8) uint8    { return b }
func bits32(x uint32) uint32 { return x }
func from32(b uint32) uint32 { return b }
func bits64(x uint64) uint64 { return x }
func from64(b uint64) uint64 { return b }

// fold makes the folding of a type T whose bits are a B.
func fold[T number, B uint8 | uint32 | uint64](start T, join func(a, b T) T, bits func(T) B, from func(B) T) folding {
	return folding{
		block: func(values unsafe.Pointer, first, n int64) uint64 {
			v := unsafe.Slice((*T)(values), first+n)[first:]
			var lanes [ir.FoldLanes]T
			for l := range lanes {
				lanes[l] = start
			}
			for len(v) > 0 {
				row := v[:min(len(v), ir.FoldLanes)]
				for l, x := range row {
					lanes[l] = join(lanes[l], x)
				}
				v = v[len(row):]
			}
			for w := ir.FoldLanes / 2; w > 0; w /= 2 {
				for l := range w {
					lanes[l] = join(lanes[l], lanes[l+w])
				}
			}
			return uint64(bits(lanes[0]))
		},
		combine: func(a, b uint64) uint64 { return uint64(bits(join(from(B(a)), from(B(b))))) },
	}
}
