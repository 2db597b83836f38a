package cpu

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

//go:generate go run github.com/millrace-go/millrace/internal/blockgen -dir .

// blockFunc computes value in.dst from values in.src, for groups times groupLen elements.
type blockFunc func(in *t0Instr, v []t0Val, groups int)

// The generated Go functions call the functions below.

func b2u(x bool) uint8 {
	var r uint8
	if x {
		r = 1
	}
	return r
}

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
func abs64(x float64) float64 { return math.Abs(x) }

func absInt[T int32 | int64](x T) T {
	if x < 0 {
		return -x
	}
	return x
}

// twice reports that a sum s = x*y + z of float32 numbers, computed in float64, must not be
// rounded a second time. The product is exact. Rounding twice is only wrong if the first rounding
// ends halfway between two float32 numbers, or if the result is a denormal float32.
func twice(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) == 1<<28 || b<<1 < 0x381<<53
}

// u64f32 converts with a single rounding. Above 2^63 it halves the number and keeps the lost bit
// as a sticky bit, because processors convert only signed integers.
func u64f32(x uint64) float32 {
	if int64(x) >= 0 {
		return float32(int64(x))
	}
	return float32(2 * float32(int64(x>>1|x&1)))
}

func tableBits(name string) []uint64 {
	id, ok := ir.TableByName(name)
	if !ok {
		panic("cpu: block functions are older than table " + name)
	}
	return ir.TableByID(id).Bits
}

func intTable[T int32 | uint32 | int64 | uint64](name string) []T {
	var t []T
	for _, b := range tableBits(name) {
		t = append(t, T(b))
	}
	return t
}

func float32Table(name string) []float32 {
	var t []float32
	for _, b := range tableBits(name) {
		t = append(t, math.Float32frombits(uint32(b)))
	}
	return t
}

func float64Table(name string) []float64 {
	var t []float64
	for _, b := range tableBits(name) {
		t = append(t, math.Float64frombits(b))
	}
	return t
}
