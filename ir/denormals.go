package ir

import "math"

// Denormals says how arithmetic treats denormal numbers of Float32 and Float64. This includes
// arithmetic for BFloat16, whose range is that of Float32. Float16's own denormals are normal
// numbers of Float32, in which they are computed.
//
// With FlushDenormals every primitive that computes replaces a denormal operand by the zero of its
// sign, and a *tiny* result by a zero of its sign. A result is tiny if it is not zero and, rounded
// to the precision of its type with unlimited exponents, is below the least normal number. This is
// exactly what x86 calls flush-to-zero and denormals-are-zero. Neg, Abs, Where and Bitcast do not
// compute: they move bits.
//
// An op that a program calls is more than primitives. With FlushDenormals an op that computes
// ([Denormals.Computes]) gets flushed operands, and its result is flushed ([Flush]), so it neither
// sees nor gives a denormal. Most expansions ensure this by themselves; [Denormals.Needs] says
// where a Flush is needed.
type Denormals uint8

const (
	KeepDenormals  Denormals = iota // IEEE 754
	FlushDenormals                  // zeros of their sign
)

// Flushes reports a dtype that has denormals which FlushDenormals flushes.
func (d Denormals) Flushes(dt DType) bool {
	return d == FlushDenormals && dt.IsFloat() && (!dt.Storage() || dt.wide())
}

// Computes reports an op that does more than choose among its operands' elements. Views, moves,
// gathers and sorts keep denormals as they are, and so do Full, Reinterpret and the positions of
// extremes. A scatter keeps them if it sets elements.
func (d Denormals) Computes(op Op) bool {
	info := op.Info()
	if d == KeepDenormals || info.Position || op == Full || op == Reinterpret {
		return false
	}
	switch info.Class {
	case ClassCreate, ClassElementwise, ClassReduce, ClassScan:
		return true
	}
	return false
}

// Bits flushes a value if d flushes its dtype.
func (d Denormals) Bits(dt DType, bits uint64) uint64 {
	if !d.Flushes(dt) {
		return bits
	}
	if bits&exponentMask(dt) == 0 {
		return bits & dt.signMask()
	}
	return bits
}

// flushRow is Bits of every element, in place.
func (d Denormals) flushRow(dt DType, row []uint64) {
	if !d.Flushes(dt) {
		return
	}
	for i, x := range row {
		row[i] = d.Bits(dt, x)
	}
}

// exponentMask has a one for every bit of a float's exponent.
func exponentMask(dt DType) uint64 { return dt.format().inf() }

// expandFlush compares bits, so its result does not depend on the processor's mode.
func expandFlush(b *Builder, dt DType, args []Ref) Ref {
	x, i := args[0], intOf(dt)
	bits := b.bits(i, x)
	denormal := b.eq(b.and(bits, b.raw(i, exponentMask(dt))), b.int(i, 0))
	return b.bits(dt, b.sel(denormal, b.and(bits, b.raw(i, dt.signMask())), bits))
}

// Flush32 is x, or the zero of its sign if x is denormal.
func Flush32(x float32) float32 {
	if b := math.Float32bits(x); b&0x7f800000 == 0 {
		return math.Float32frombits(b & (1 << 31))
	}
	return x
}

// Flush64 is Flush32 for float64.
func Flush64(x float64) float64 {
	if b := math.Float64bits(x); b&(0x7ff<<52) == 0 {
		return math.Float64frombits(b & (1 << 63))
	}
	return x
}

// tiny32 is the limit below which a number is tiny. It is the middle between the least normal
// float32 and the number before it, with unlimited exponents; the middle itself rounds up, to even.
const tiny32 = 0x1.ffffffp-127

// FlushTo32 rounds a number, exact or rounded to odd, to float32. A tiny number becomes the zero of
// its sign.
func FlushTo32(v float64) float32 {
	if -tiny32 < v && v < tiny32 {
		return float32(math.Copysign(0, v))
	}
	return float32(v)
}

// The arithmetic of FlushDenormals. Tiny sums of float32 and float64 are exact, so it is enough to
// flush their results.

func FlushAdd32(x, y float32) float32 { return Flush32(float32(Flush32(x) + Flush32(y))) }
func FlushAdd64(x, y float64) float64 { return Flush64(Flush64(x) + Flush64(y)) }
func FlushSub32(x, y float32) float32 { return Flush32(float32(Flush32(x) - Flush32(y))) }
func FlushSub64(x, y float64) float64 { return Flush64(Flush64(x) - Flush64(y)) }

// FlushMul32 rounds the product, which is exact in float64.
func FlushMul32(x, y float32) float32 {
	return FlushTo32(float64(float64(Flush32(x)) * float64(Flush32(y))))
}

// FlushDiv32 rounds twice. This is harmless for quotients, since float64 has more than twice the
// digits.
func FlushDiv32(x, y float32) float32 {
	return FlushTo32(float64(Flush32(x)) / float64(Flush32(y)))
}

// FlushFMA32 is x*y + z, rounded once.
func FlushFMA32(x, y, z float32) float32 {
	return FlushTo32(oddSum(Flush32(x), Flush32(y), Flush32(z)))
}

const leastNormal64 = 0x1p-1022

// FlushMul64 repeats small products with scaled operands, to find whether they are tiny.
func FlushMul64(x, y float64) float64 {
	x, y = Flush64(x), Flush64(y)
	p := float64(x * y)
	if p != p || math.Abs(p) > leastNormal64 {
		return p
	}
	fx, ex := math.Frexp(x)
	fy, ey := math.Frexp(y)
	return tiny64(p, float64(fx*fy), ex+ey)
}

// FlushDiv64 repeats small quotients with scaled operands, to find whether they are tiny.
func FlushDiv64(x, y float64) float64 {
	x, y = Flush64(x), Flush64(y)
	q := x / y
	if q != q || math.Abs(q) > leastNormal64 || x == 0 || math.IsInf(y, 0) {
		return q
	}
	fx, ex := math.Frexp(x)
	fy, ey := math.Frexp(y)
	return tiny64(q, fx/fy, ex-ey)
}

// tiny64 is r, or the zero of its sign if r is tiny. f*2^e is r rounded with unlimited exponents.
func tiny64(r, f float64, e int) float64 {
	if f != 0 && math.Abs(f) < math.Ldexp(1, min(max(-1022-e, -4), 4)) {
		return math.Copysign(0, r)
	}
	return r
}

// FlushFMA64 repeats small sums with scaled operands, to find whether they are tiny. A product may
// be so far below the sum's last digit that it would be denormal even when scaled. It then only
// decides on which side of the sum the exact value is, as any other small number would.
func FlushFMA64(x, y, z float64) float64 {
	x, y, z = Flush64(x), Flush64(y), Flush64(z)
	r := math.FMA(x, y, z)
	switch {
	case r != r || math.Abs(r) > leastNormal64 || x == 0 || y == 0:
		return r
	case z == 0:
		return FlushMul64(x, y)
	}
	const up = 200
	fx, ex := math.Frexp(x)
	fy, ey := math.Frexp(y)
	if s := math.FMA(fx, math.Ldexp(fy, max(ex+ey+up, -900)), math.Ldexp(z, up)); s != 0 && math.Abs(s) < math.Ldexp(leastNormal64, up) {
		return math.Copysign(0, s)
	}
	return r
}

func flush1(f func(float32) float32) prim {
	return func(x, _, _ uint64) uint64 { return f32bits(f(Flush32(f32(x)))) }
}

func flush2(f func(x, y float32) float32) prim {
	return func(x, y, _ uint64) uint64 { return f32bits(f(f32(x), f32(y))) }
}

func double1(f func(float64) float64) prim {
	return func(x, _, _ uint64) uint64 { return f64bits(f(Flush64(f64(x)))) }
}

func double2(f func(x, y float64) float64) prim {
	return func(x, y, _ uint64) uint64 { return f64bits(f(f64(x), f64(y))) }
}

// through64 is a function of float64 whose result, rounded to float32, is right.
func through64(f func(float64) float64) prim {
	return flush1(func(x float32) float32 { return float32(f(float64(x))) })
}

// Roots are never tiny, nor are whole numbers.
var flushPrims32 = [NumOps]prim{
	Add: flush2(FlushAdd32), Sub: flush2(FlushSub32), Mul: flush2(FlushMul32), FDiv: flush2(FlushDiv32),
	FMA: func(x, y, z uint64) uint64 { return f32bits(FlushFMA32(f32(x), f32(y), f32(z))) },
	Neg: prims32[Neg], Abs: prims32[Abs],
	Sqrt: through64(math.Sqrt), Floor: through64(math.Floor), Ceil: through64(math.Ceil),
	Round: through64(math.RoundToEven), Trunc: through64(math.Trunc),
}

var flushPrims64 = [NumOps]prim{
	Add: double2(FlushAdd64), Sub: double2(FlushSub64), Mul: double2(FlushMul64), FDiv: double2(FlushDiv64),
	FMA: func(x, y, z uint64) uint64 { return f64bits(FlushFMA64(f64(x), f64(y), f64(z))) },
	Neg: prims64[Neg], Abs: prims64[Abs],
	Sqrt: double1(math.Sqrt), Floor: double1(math.Floor), Ceil: double1(math.Ceil),
	Round: double1(math.RoundToEven), Trunc: double1(math.Trunc),
}

// flushing makes comparisons and conversions flush, too.
func flushing(all *primitives) *primitives {
	d := FlushDenormals
	for _, dt := range [...]DType{Float32, Float64} {
		for op, f := range all.comparisons[dt] {
			if f != nil {
				all.comparisons[dt][op] = func(x, y, _ uint64) uint64 { return f(d.Bits(dt, x), d.Bits(dt, y), 0) }
			}
		}
		for to := range all.conversions {
			if f := all.conversions[to][dt]; f != nil {
				all.conversions[to][dt] = func(x, _, _ uint64) uint64 { return f(d.Bits(dt, x), 0, 0) }
			}
		}
	}
	all.conversions[Float32][Float64] = func(x, _, _ uint64) uint64 { return f32bits(FlushTo32(f64(x))) }
	return all
}
