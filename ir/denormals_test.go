package ir

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// flushed is the result of flushing for an exact number: rounded with unlimited exponents, then 0
// if it is below the least normal number.
func flushed(x *big.Float, dt DType, zero float64) float64 {
	if x.Sign() == 0 {
		return zero
	}
	least := 0x1p-126
	prec := uint(24)
	if dt == Float64 {
		least, prec = 0x1p-1022, 53
	}
	r := new(big.Float).SetMode(big.ToNearestEven).SetPrec(prec).Set(x)
	if new(big.Float).Abs(r).Cmp(big.NewFloat(least)) < 0 {
		return math.Copysign(0, float64(x.Sign()))
	}
	if dt == Float32 {
		f, _ := r.Float32()
		return float64(f)
	}
	f, _ := r.Float64()
	return f
}

func wideFloat(x float64) *big.Float { return new(big.Float).SetPrec(2400).SetFloat64(x) }

// near draws numbers around and below the least normal one, numbers whose products are around it,
// and others.
func near(r *rand.Rand, dt DType) float64 {
	digits, bias := 23, 127
	if dt == Float64 {
		digits, bias = 52, 1023
	}
	e := []int{0, 0, 1, 2, digits, bias / 2, bias / 2, bias - 2, bias, bias + 1, 3 * bias / 2, 2 * bias}[r.IntN(12)] + r.IntN(3) - 1
	m := []uint64{0, 1, 1<<digits - 1, 1<<digits - 2, 1 << (digits - 1), r.Uint64(), r.Uint64()}[r.IntN(7)] & (1<<digits - 1)
	bits := uint64(max(0, min(e, 2*bias)))<<digits | m
	if r.IntN(2) == 0 {
		bits |= 1 << (dt.Bits() - 1)
	}
	return BitsFloat(dt, bits)
}

// TestFlush compares the primitives that flush with exact arithmetic.
func TestFlush(t *testing.T) {
	n := 300_000
	if testing.Short() {
		n = 30_000
	}
	for _, dt := range []DType{Float32, Float64} {
		r := rand.New(rand.NewPCG(3, uint64(dt)))
		flush := func(x float64) float64 { return BitsFloat(dt, FlushDenormals.Bits(dt, FloatBits(dt, x))) }
		tiny := 0
		for range n {
			x, y, z := near(r, dt), near(r, dt), near(r, dt)
			if r.IntN(3) == 0 {
				z = -flush(x) * flush(y) // sums that cancel
				if dt == Float32 {
					z = float64(float32(z))
				}
				if math.IsInf(z, 0) {
					continue
				}
			}
			fx, fy, fz := flush(x), flush(y), flush(z)
			product := new(big.Float).SetPrec(2400).Mul(wideFloat(fx), wideFloat(fy))
			want := map[Op]float64{
				Add: flushed(new(big.Float).SetPrec(2400).Add(wideFloat(fx), wideFloat(fy)), dt, fx+fy),
				Sub: flushed(new(big.Float).SetPrec(2400).Sub(wideFloat(fx), wideFloat(fy)), dt, fx-fy),
				Mul: flushed(product, dt, fx*fy),
				FMA: flushed(new(big.Float).SetPrec(4800).Add(product, wideFloat(fz)), dt, float64(fx*fy)+fz),
			}
			if fy != 0 {
				want[FDiv] = flushed(new(big.Float).SetPrec(400).Quo(wideFloat(fx), wideFloat(fy)), dt, fx/fy)
			}
			if product.Sign() != 0 && fx*fy == 0 && fz == 0 {
				want[FMA] = want[Mul]
			}
			for op, w := range want {
				if math.IsInf(w, 0) {
					continue
				}
				args := []uint64{FloatBits(dt, x), FloatBits(dt, y), FloatBits(dt, z)}
				got := FlushDenormals.EvalPrim(Instr{Op: op, DT: dt}, []DType{dt, dt, dt}, args[:op.Info().Arity])
				if got != FloatBits(dt, w) {
					t.Fatalf("%v of %v: %g %g %g gives %#x, not %g", op, dt, x, y, z, got, w)
				}
				if w == 0 {
					tiny++
				}
			}
			if dt == Float64 {
				w := flushed(wideFloat(fx), Float32, fx)
				got := FlushDenormals.EvalPrim(Instr{Op: Convert, DT: Float32}, []DType{dt}, []uint64{FloatBits(dt, x)})
				if !math.IsInf(w, 0) && got != FloatBits(Float32, w) {
					t.Fatalf("%g becomes %#x, not %g", x, got, w)
				}
			}
		}
		if tiny < n/4 {
			t.Errorf("%v: only %d of %d results are 0", dt, tiny, n)
		}
	}
}

// TestFlushTie tests the numbers for which flushing and rounding to denormals differ. A number is 0
// if it rounds to the least normal number only among denormals; it is not 0 if it does so among all
// numbers.
func TestFlushTie(t *testing.T) {
	mul := func(x, y float64) uint64 {
		return FlushDenormals.EvalPrim(Instr{Op: Mul, DT: Float32}, []DType{Float32, Float32}, []uint64{FloatBits(Float32, x), FloatBits(Float32, y)})
	}
	if got := mul(0x1.fffffep-1, 0x1p-126); got != 0 {
		t.Errorf("below the least normal number: %#x", got)
	}
	if got := mul(0x1.ffffp-1, 0x1.00008p-126); got != 0x00800000 {
		t.Errorf("rounded to the least normal number: %#x", got)
	}
	if got := mul(-0x1p-100, 0x1p-100); got != 1<<31 {
		t.Errorf("a negative product: %#x", got)
	}
}

// TestNeeds runs every op on values that are denormal or give denormals, once flushed only where
// Needs says and once flushed everywhere. The two results must be equal and not denormal.
func TestNeeds(t *testing.T) {
	const n = 2000
	d := FlushDenormals
	flushedOps := 0
	for op := OpInvalid + 1; op < NumOps; op++ {
		if c := op.Class(); c != ClassCreate && c != ClassElementwise || !d.Computes(op) {
			continue
		}
		for _, s := range signatures(op) {
			needs := d.Needs(op, s.dt, s.args)
			if needs != (Flushing{}) {
				flushedOps++
			}
			r := rand.New(rand.NewPCG(uint64(op), uint64(s.dt)))
			var all, few [][]uint64 // by operand, those of every element
			column := func(list *[][]uint64) []uint64 {
				*list = append(*list, make([]uint64, n))
				return (*list)[len(*list)-1]
			}
			if op.Info().Indexed {
				at := column(&all)
				for i := range at {
					at[i] = r.Uint64N(1 << 20)
				}
				all = append(all, make([]uint64, n))
				few = append(few, all...)
			}
			for k, dt := range s.args {
				every, some := column(&all), column(&few)
				for i := range n {
					x := r.Uint64() & widthMask(dt)
					switch {
					case dt == Bool:
						x &= 1
					case dt == BFloat16:
						x = FloatBits(dt, near(r, Float32))
						if r.IntN(3) == 0 {
							x &= 0x807f
						}
					case (dt == Float32 || dt == Float64) && r.IntN(8) > 0:
						x = FloatBits(dt, near(r, dt))
					}
					every[i] = d.Bits(dt, x)
					if needs.Operand(k) {
						x = d.Bits(dt, x)
					}
					some[i] = x
				}
			}
			want, got := make([]uint64, n), make([]uint64, n)
			d.EvalOps(op, s.dt, s.args, all, want)
			d.EvalOps(op, s.dt, s.args, few, got)
			for i := range n {
				want, got := d.Bits(s.dt, want[i]), got[i]
				if needs.Result {
					got = d.Bits(s.dt, got)
				}
				if got != want && !(s.dt.IsFloat() && isNaNBits(s.dt, got) && isNaNBits(s.dt, want)) {
					var args []uint64
					for _, row := range few {
						args = append(args, row[i])
					}
					t.Fatalf("%v of %v to %v: %#x gives %#x, not %#x", op, s.args, s.dt, args, got, want)
				}
			}
		}
	}
	if flushedOps == 0 {
		t.Error("no op needs anything")
	}
}

// TestFlushClose compares functions of normal numbers with their results when denormals are kept.
// They differ at most by the least normal number, or by such a number multiplied by x.
func TestFlushClose(t *testing.T) {
	step := uint64(9973)
	if testing.Short() {
		step *= 16
	}
	var normal []uint64
	for bits := uint64(0); bits < 1<<32; bits += step {
		if FlushDenormals.Bits(Float32, bits) == bits {
			normal = append(normal, bits)
		}
	}
	args, dts := [][]uint64{normal}, []DType{Float32}
	keeps, flushes := make([]uint64, len(normal)), make([]uint64, len(normal))
	for op := OpInvalid + 1; op < NumOps; op++ {
		info := op.Info()
		if info.Class != ClassElementwise || info.Arity != 1 || !info.In.Has(Float32) || info.Out != 0 || op == Reinterpret {
			continue
		}
		EvalOps(op, Float32, dts, args, keeps)
		FlushDenormals.EvalOps(op, Float32, dts, args, flushes)
		for i, bits := range normal {
			kept, flushed := BitsFloat(Float32, keeps[i]), BitsFloat(Float32, FlushDenormals.Bits(Float32, flushes[i]))
			if kept != flushed && !(math.Abs(kept-flushed) <= 0x1p-126*max(1, math.Abs(BitsFloat(Float32, bits)))) && !(kept != kept && flushed != flushed) {
				t.Errorf("%v of %g: %g, and %g where denormals are flushed", op, BitsFloat(Float32, bits), kept, flushed)
				break
			}
		}
	}
}
