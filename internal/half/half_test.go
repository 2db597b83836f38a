package half

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// TestHalves compares conversions of 16-bit floats with ir's: all 16-bit values, numbers halfway
// between two of them and next to these, and random bits.
func TestHalves(t *testing.T) {
	for _, h := range []struct {
		dt     ir.DType
		widen  func(uint16) float32
		narrow func(float32) uint16
	}{{ir.Float16, WidenFloat16, NarrowFloat16}, {ir.BFloat16, WidenBFloat16, NarrowBFloat16}} {
		narrow := func(f float32) {
			t.Helper()
			if got, want := h.narrow(f), uint16(ir.FloatBits(h.dt, float64(f))); !ir.SameValue(h.dt, uint64(got), uint64(want)) {
				t.Fatalf("%v of %g (%#x) is %#x, want %#x", h.dt, f, math.Float32bits(f), got, want)
			}
		}
		for i := range 1 << 16 {
			x, want := h.widen(uint16(i)), float32(ir.BitsFloat(h.dt, uint64(i)))
			if !ir.SameValue(ir.Float32, uint64(math.Float32bits(x)), uint64(math.Float32bits(want))) {
				t.Fatalf("%v %#x is %g, want %g", h.dt, i, x, want)
			}
			between := math.Float32frombits(math.Float32bits(x)/2 + math.Float32bits(h.widen(uint16(i)+1))/2)
			for _, f := range []float32{x, between, (x + h.widen(uint16(i)+1)) / 2} {
				for d := range uint32(5) {
					narrow(math.Float32frombits(math.Float32bits(f) + d - 2))
				}
			}
		}
		rng := rand.New(rand.NewPCG(16, uint64(h.dt)))
		for range 1 << 18 {
			narrow(math.Float32frombits(rng.Uint32()))
		}
	}
}
