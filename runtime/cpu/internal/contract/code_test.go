package contract

import (
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// TestContractCode checks for which elements this processor's level has functions, and which of
// them can flush denormals. NEON's cannot, because NEON flushes products that rounding would make
// the least normal number. NEON also has no 64-bit integer multiplication.
func TestContractCode(t *testing.T) {
	level := machine.Level()
	if level == machine.None {
		t.Skip("no machine code here")
	}
	neon := level == machine.NEON
	s := Source{Level: level}
	for _, dt := range contractDTypes {
		floats, long := floatBitsOf[dt] != nil, dt == ir.Int64 || dt == ir.Uint64
		if got, want := s.Tiles(dt, false), !(neon && long); got != want {
			t.Errorf("%v: tiles %t, want %t", dt, got, want)
		}
		if got, want := s.Tiles(dt, true), !(neon && (long || floats)); got != want {
			t.Errorf("%v, denormals flushed: tiles %t, want %t", dt, got, want)
		}
	}
}

// TestContractRoundedUp checks flushed denormals: a product that rounding makes the least normal
// number stays that number, on every contractor.
func TestContractRoundedUp(t *testing.T) {
	roundedUp[float32](t, ir.Float32, (1-0x1p-13)*0x1p-63, (1+0x1p-13)*0x1p-63, 0x1p-126)
	roundedUp[float64](t, ir.Float64, (1-0x1p-28)*0x1p-511, (1+0x1p-28)*0x1p-511, 0x1p-1022)
}

func roundedUp[T float32 | float64](t *testing.T, dt ir.DType, a, b, want T) {
	const m, n = 9, 21
	x, y, out := make([]T, m), make([]T, n), make([]T, m*n)
	for i := range x {
		x[i] = a
	}
	for i := range y {
		y[i] = b
	}
	for name, run := range contractors(1) {
		clear(out)
		c := &Contraction{M: m, N: n, K: 1, DT: dt, Soft: true, Out: Results{Base: unsafe.Pointer(&out[0]), Row: n},
			X: Side{Base: unsafe.Pointer(&x[0]), Stride: 1, KStride: 1}, Y: Side{Base: unsafe.Pointer(&y[0]), Stride: 1, KStride: 1}}
		if err := run.contract(c, Memory, Memory, false); err != nil {
			t.Fatal(err)
		}
		for i, got := range out {
			if got != want {
				t.Fatalf("%s: %v, result %d is %g, not %g", name, dt, i, got, want)
			}
		}
	}
}
