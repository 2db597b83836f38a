package interp

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

//go:generate go run github.com/millrace-go/millrace/internal/blockgen -dir .

// blockFunc computes value in.dst from values in.src, for groups times GroupLen elements.
type blockFunc func(in *instr, v []value, groups int)

// group returns group g of a value.
func group[T any](v value, g int) *[GroupLen]T {
	return (*[GroupLen]T)(unsafe.Add(v.p, g*v.step))
}

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

// mulAdd returns x*y + z, to be rounded to float32.
func mulAdd(x, y, z float32) float64 { return float64(float64(x)*float64(y)) + float64(z) }

// pick returns a if c holds, else b. It becomes a conditional move.
func pick[T any](c bool, a, b T) T {
	if c {
		b = a
	}
	return b
}

// pick32 and pick64 select bits: a select of floats would become a branch.

func pick32(c bool, a, b float32) float32 {
	u := math.Float32bits(b)
	if c {
		u = math.Float32bits(a)
	}
	return math.Float32frombits(u)
}

func pick64(c bool, a, b float64) float64 {
	u := math.Float64bits(b)
	if c {
		u = math.Float64bits(a)
	}
	return math.Float64frombits(u)
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
		panic("cpu: block functions need an unknown table: " + name)
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

func float64Table(name string) []float64 {
	var t []float64
	for _, b := range tableBits(name) {
		t = append(t, math.Float64frombits(b))
	}
	return t
}
