package ir

import (
	"fmt"
	"sync"
)

// Storage dtypes (see [DType.Compute]) are only moved: loaded, stored, chosen, reinterpreted. Every
// other op on them is defined here, once: its operands are converted to the dtype that computes,
// the op is done there, and its result is converted back, rounded for floats, wrapped for integers.
// Wrapping once at the end gives the same as wrapping each operation: sums, products, bits and
// shifts to the left depend only on the low bits of their operands, and the results of other ops
// fit.

// IsPrim reports an instruction that printers spell and EvalPrim knows. dt is the dtype of its
// result, first that of its first operand, if any.
func IsPrim(op Op, dt, first DType) bool {
	if !op.Info().Prim {
		return false
	}
	if !dt.Storage() && !first.Storage() {
		return true
	}
	switch op {
	case Const, Param, Load, LoadAt, Scalar, Where, Bitcast:
		return true
	case Convert:
		return dt == Int32 && first.IsInt() || first == Int32 && dt.IsInt()
	}
	return op.Class() == ClassPrim && op.Info().In == 0
}

// leading is the dtype of the first operand, Invalid if there is none.
func leading(argDT []DType) DType {
	if len(argDT) == 0 {
		return Invalid
	}
	return argDT[0]
}

var widenings sync.Map // expansionKey → *Prog

// Widen is the meaning of op on storage dtypes, in other ops: those that compute it, with a cast or
// conversion of each operand and of the result. It is nil if neither operands nor result have such
// a dtype. It is also nil for primitives, and for the casts between a storage float and Float32. The
// parameters are those of [Expansion]. Reductions and other ops on rows are widened as well: they
// are the same op between conversions.
func Widen(op Op, dt DType, argDT []DType) *Prog {
	storage, first := dt.Storage(), leading(argDT)
	for _, d := range argDT {
		storage = storage || d.Storage()
	}
	if !storage || op == Full || IsPrim(op, dt, first) || !computes(op.Class()) {
		return nil
	}
	if op == Cast && (dt == Float32 && first.Storage() && first.IsFloat() || first == Float32 && dt.Storage() && dt.IsFloat()) {
		return nil
	}
	key := expansionKey{op: op, dt: dt, nargs: uint8(len(argDT))}
	copy(key.args[:], argDT)
	if p, ok := widenings.Load(key); ok {
		return p.(*Prog)
	}
	p, _ := widenings.LoadOrStore(key, widen(op, dt, argDT))
	return p.(*Prog)
}

// computes reports the classes of ops that do more than move elements.
func computes(c Class) bool {
	switch c {
	case ClassCreate, ClassElementwise, ClassPrim, ClassReduce, ClassScan, ClassSort:
		return true
	}
	return false
}

func widen(op Op, dt DType, argDT []DType) *Prog {
	p := &Prog{Name: fmt.Sprintf("%v.%v", op, dt)}
	if op.Info().Indexed {
		p.Params = append(p.Params, Uint32, Uint32)
	}
	p.Params = append(p.Params, argDT...)
	var b Builder
	args := make([]Ref, len(p.Params))
	for i, d := range p.Params {
		args[i] = b.Emit(Param, d, uint64(i))
	}
	p.Results = []Ref{widened(&b, op, dt, args)}
	p.Code = b.Code
	return p
}

func widened(b *Builder, op Op, dt DType, args []Ref) Ref {
	switch {
	case op == Cast || op == Convert:
		return castStorage(b, dt, args[0])
	case dt.IsFloat() && op == Neg:
		return b.bits(dt, flip(b, Xor, args[0], int64(dt.signMask())))
	case dt.IsFloat() && op == Abs:
		return b.bits(dt, flip(b, And, args[0], int64(dt.signMask()-1)))
	case op == Reinterpret:
		return expandReinterpret(b, dt, args)
	case op == Uniform:
		return b.down(dt, uniformNarrow(b, dt, args))
	}
	for i, a := range args {
		args[i] = b.up(a)
	}
	return b.down(dt, b.Emit(op, dt.Compute(), 0, args...))
}

// up converts a value to the dtype in which it is computed.
func (b *Builder) up(x Ref) Ref {
	dt := b.DT(x)
	switch {
	case !dt.Storage():
		return x
	case dt.IsFloat():
		return b.Emit(Cast, Float32, 0, x)
	}
	return b.convert(Int32, x)
}

// down converts a computed value back: floats round, integers wrap.
func (b *Builder) down(dt DType, x Ref) Ref {
	switch {
	case !dt.Storage():
		return x
	case dt.IsFloat():
		return b.Emit(Cast, dt, 0, x)
	}
	return b.convert(dt, x)
}

// pattern is a storage float's bits as a number.
func pattern(b *Builder, x Ref) Ref { return b.convert(Int32, b.bits(b.DT(x).Unsigned(), x)) }

// ofPattern is the storage float of the low bits of an Int32.
func ofPattern(b *Builder, dt DType, x Ref) Ref { return b.bits(dt, b.convert(dt.Unsigned(), x)) }

// flip combines a storage float's pattern with a mask.
func flip(b *Builder, op Op, x Ref, mask int64) Ref {
	return b.convert(b.DT(x).Unsigned(), b.binary(op, pattern(b, x), b.int(Int32, mask)))
}

// castStorage splits other casts into casts through a value of Compute. They saturate, and round
// once.
func castStorage(b *Builder, dt DType, x Ref) Ref {
	from := b.DT(x)
	switch {
	case from == dt:
		return x
	case from.Storage():
		return b.Emit(Cast, dt, 0, b.up(x))
	case dt.IsInt() && from == Int32:
		return b.convert(dt, saturateInt(b, dt, x))
	case dt.IsInt():
		return b.Emit(Cast, dt, 0, b.Emit(Cast, Int32, 0, x))
	case from == Float64 || from.Size() >= 4 && dt.format().bias > Float32.format().mantissa:
		return b.Emit(Cast, dt, 0, oddFloat32(b, x))
	}
	// An integer that float32 cannot hold exceeds dt's greatest number and becomes infinity.
	return b.Emit(Cast, dt, 0, b.Emit(Cast, Float32, 0, x))
}

// oddFloat32 rounds x to odd: a number that float32 cannot hold becomes the neighbour with a last
// bit of 1. Rounding that further gives the same as rounding x.
func oddFloat32(b *Builder, x Ref) Ref {
	from := b.DT(x)
	if from == Float64 {
		f := b.convert(Float32, x)
		back := b.convert(Float64, f)
		return toOdd(b, f, b.ne(back, x), b.gt(b.abs(back), b.abs(x)))
	}
	m, t := x, from
	if from.IsSigned() {
		t = Uint32
		if from == Int64 {
			t = Uint64
		}
		m = b.bits(t, b.abs(x))
	}
	// The largest lose two bits first, so that conversions stay in range.
	large := b.ge(m, b.raw(t, 1<<(t.Bits()-2)))
	low := b.and(m, b.int(t, 3))
	sticky := b.or(b.shr(m, 2), b.sel(b.ne(low, b.int(t, 0)), b.int(t, 1), b.int(t, 0)))
	m = b.sel(large, sticky, m)
	f := b.convert(Float32, m)
	back := b.convert(t, f)
	f = toOdd(b, f, b.ne(back, m), b.gt(back, m))
	f = b.sel(large, b.mul(f, b.float(Float32, 4)), f)
	if !from.IsSigned() {
		return f
	}
	return b.sel(b.lt(x, b.int(from, 0)), b.neg(f), f)
}

// toOdd is f, which was rounded, or its neighbour on the other side of the exact value: the one
// with a last bit of 1. above says that f is greater than the exact value.
func toOdd(b *Builder, f, inexact, above Ref) Ref {
	i := b.bits(Int32, f)
	down := b.sel(above, b.sub(i, b.int(Int32, 1)), i)
	return b.bits(Float32, b.sel(inexact, b.or(down, b.int(Int32, 1)), i))
}

// widenFloat is a storage float as float32, exactly.
func widenFloat(b *Builder, x Ref) Ref {
	dt, i := b.DT(x), func(v int64) Ref { return b.int(Int32, v) }
	f, sign := dt.format(), int64(dt.signMask())
	h, toSign := pattern(b, x), int64(32-dt.Bits())
	if dt.wide() {
		return b.bits(Float32, b.shl(h, toSign))
	}
	m := b.and(h, i(sign-1))
	at := b.shl(m, int64(Float32.format().mantissa-f.mantissa))
	normal := b.add(at, i(f.biasToFloat32()))
	special := b.or(at, i(int64(Float32.format().inf())))
	// Denormals are a number of units, normal in float32.
	units := b.mul(b.convert(Float32, m), b.float(Float32, exp2i(int64(f.leastExponent()))))
	r := b.sel(b.lt(m, i(int64(f.inf()))), normal, special)
	r = b.sel(b.lt(m, i(1<<f.mantissa)), b.bits(Int32, units), r)
	return b.bits(Float32, b.or(r, b.shl(b.and(h, i(sign)), toSign)))
}

// narrowFloat rounds a float32 to a storage float, half to even. NaN stays NaN.
func narrowFloat(b *Builder, dt DType, x Ref) Ref {
	i := func(v int64) Ref { return b.int(Int32, v) }
	f, f32 := dt.format(), Float32.format()
	drop := int64(f32.mantissa - f.mantissa) // bits that rounding removes
	half, toSign := int64(1)<<(drop-1), int64(32-dt.Bits())
	u := b.bits(Int32, x)
	a := b.and(u, i(0x7fffffff))
	nan := b.gt(a, i(int64(f32.inf())))
	if dt.wide() {
		odd := b.and(b.shr(u, drop), i(1))
		r := b.shr(b.add(b.add(u, i(half-1)), odd), drop)
		return ofPattern(b, dt, b.sel(nan, b.or(b.shr(u, drop), i(1<<(f.mantissa-1))), r))
	}
	odd := b.and(b.shr(a, drop), i(1))
	normal := b.shr(b.add(b.add(a, i(half-1-f.biasToFloat32())), odd), drop)
	// Adding a power of two whose last place is dt's least number rounds to such units.
	one := exp2i(int64(f.leastExponent() + f32.mantissa))
	shifted := b.add(b.bits(Float32, a), b.float(Float32, one))
	denormal := b.sub(b.bits(Int32, shifted), i(int64(FloatBits(Float32, one))))
	leastNormal, tooLarge := FloatBits(Float32, exp2i(int64(1-f.bias))), FloatBits(Float32, exp2i(int64(f.bias+1)))
	r := b.sel(b.lt(a, i(int64(leastNormal))), denormal, normal)
	r = b.sel(b.lt(a, i(int64(tooLarge))), r, b.sel(nan, i(int64(f.quietNaN())), i(int64(f.inf()))))
	return ofPattern(b, dt, b.or(r, b.and(b.shr(u, toSign), i(int64(dt.signMask())))))
}

// uniformNarrow draws as many bits as a storage float holds, so that rounding does not reach 1.
func uniformNarrow(b *Builder, dt DType, args []Ref) Ref {
	n := int64(dt.SignificantBits())
	w := philox(b, args[0], args[1], args[2])
	v := b.convert(Float32, b.bits(Int32, b.shr(w[0], 32-n)))
	return b.mul(v, b.float(Float32, exp2i(-n)))
}
