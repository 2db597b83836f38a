package ir

import (
	"fmt"
	"math"
	"math/bits"
)

// EvalPrim is the meaning of one primitive on bit patterns: every value is
// held in its dtype's bits, zero-extended. argDT are the operands' dtypes, an
// absent operand in the middle having Invalid. What an op calls out of range
// (see the comments at the ops) has some defined result here, so that wrong
// programs fail in comparisons rather than by a fault. Param, Load, Scalar
// and the indices get their value from outside and are not primitives that
// can be evaluated; passing one is a bug of the caller and panics.
func EvalPrim(in Instr, argDT []DType, args []uint64) uint64 {
	switch in.Op {
	case Const:
		return in.Imm
	case Where:
		if args[0] != 0 {
			return args[1]
		}
		return args[2]
	case Convert:
		return convertBits(in.DT, argDT[0], args[0])
	case Bitcast:
		return args[0]
	case Lookup:
		return lookupBits(in.Imm, args[0])
	case Rare:
		if args[0] == 0 {
			return args[1]
		}
		return evalFirst(SubByID(in.Imm), args[2:])
	case Eq, Ne, Lt, Le, Gt, Ge:
		return boolBit(compareBits(in.Op, argDT[0], args[0], args[1]))
	}
	var y, z uint64
	if len(args) > 1 {
		y = args[1]
	}
	if len(args) > 2 {
		z = args[2]
	}
	switch in.DT {
	case Float32:
		f := func(b uint64) float32 { return math.Float32frombits(uint32(b)) }
		return uint64(math.Float32bits(prim32(in.Op, f(args[0]), f(y), f(z))))
	case Float64:
		f := math.Float64frombits
		return f64bits(prim64(in.Op, f(args[0]), f(y), f(z)))
	}
	return primInt(in.Op, in.DT, args[0], y)
}

func f64bits(x float64) uint64 { return math.Float64bits(x) }

func boolBit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func notPrim(op Op, dt DType) string {
	return fmt.Sprintf("ir: %v is not a primitive of %v", op, dt)
}

// prim32 rounds every operation to float32 on its own: the conversions keep a
// compiler from contracting or from working wider.
func prim32(op Op, x, y, z float32) float32 {
	switch op {
	case Add:
		return float32(x + y)
	case Sub:
		return float32(x - y)
	case Mul:
		return float32(x * y)
	case FDiv:
		return float32(x / y)
	case FMA:
		return FMA32(x, y, z)
	case Neg:
		return math.Float32frombits(math.Float32bits(x) ^ 1<<31)
	case Abs:
		return math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	case Sqrt: // 53 bits are enough for the second rounding to do no harm
		return float32(math.Sqrt(float64(x)))
	case Floor:
		return float32(math.Floor(float64(x)))
	case Ceil:
		return float32(math.Ceil(float64(x)))
	case Round:
		return float32(math.RoundToEven(float64(x)))
	case Trunc:
		return float32(math.Trunc(float64(x)))
	}
	panic(notPrim(op, Float32))
}

func prim64(op Op, x, y, z float64) float64 {
	switch op {
	case Add:
		return float64(x + y)
	case Sub:
		return float64(x - y)
	case Mul:
		return float64(x * y)
	case FDiv:
		return float64(x / y)
	case FMA:
		return math.FMA(x, y, z)
	case Neg:
		return math.Float64frombits(math.Float64bits(x) ^ 1<<63)
	case Abs:
		return math.Abs(x)
	case Sqrt:
		return math.Sqrt(x)
	case Floor:
		return math.Floor(x)
	case Ceil:
		return math.Ceil(x)
	case Round:
		return math.RoundToEven(x)
	case Trunc:
		return math.Trunc(x)
	}
	panic(notPrim(op, Float64))
}

// FMA32 is x*y + z with one rounding. The product is exact in float64; the sum
// there is rounded to odd, which keeps enough of what was lost for the final
// rounding to float32 to be the right one, denormal results included.
func FMA32(x, y, z float32) float32 {
	p := float64(float64(x) * float64(y))
	c := float64(z)
	s := float64(p + c)
	if b := math.Float64bits(s); b&1 == 0 && b>>52&0x7ff != 0x7ff {
		// The error of the sum, exactly (Knuth's TwoSum).
		t := float64(s - p)
		e := float64(float64(p-float64(s-t)) + float64(c-t))
		if e != 0 {
			if (e > 0) == (s > 0) {
				b++
			} else {
				b--
			}
			s = math.Float64frombits(b)
		}
	}
	return float32(s)
}

// primInt works on the zero-extended bits of any integer type and of Bool,
// whose values are masks of one bit. Sums and products wrap.
func primInt(op Op, dt DType, x, y uint64) uint64 {
	m := widthMask(dt)
	switch op {
	case Add:
		return (x + y) & m
	case Sub:
		return (x - y) & m
	case Mul:
		return x * y & m
	case Neg:
		return -x & m
	case Abs:
		if signExtend(dt, x) < 0 && dt.IsSigned() {
			return -x & m
		}
		return x
	case And:
		return x & y
	case Or:
		return x | y
	case Xor:
		return x ^ y
	case Not:
		return ^x & m
	case Quo, Mod:
		return divideBits(op, dt, x, y) & m
	case MulHi:
		return x * y >> 32
	case ShlRaw:
		return x << (y & uint64(dt.Bits()-1)) & m
	case ShrRaw:
		n := y & uint64(dt.Bits()-1)
		if dt.IsSigned() {
			return uint64(signExtend(dt, x)>>n) & m
		}
		return x >> n
	}
	panic(notPrim(op, dt))
}

func divideBits(op Op, dt DType, x, y uint64) uint64 {
	if y == 0 {
		return 0
	}
	if !dt.IsSigned() {
		if op == Quo {
			return x / y
		}
		return x % y
	}
	a, b := signExtend(dt, x), signExtend(dt, y)
	if op == Quo {
		return uint64(a / b)
	}
	return uint64(a % b)
}

// signExtend reads the bits of a signed type of dt's width.
func signExtend(dt DType, x uint64) int64 {
	n := 64 - dt.Bits()
	return int64(x<<n) >> n
}

func compareBits(op Op, dt DType, x, y uint64) bool {
	switch {
	case dt.IsFloat():
		return ordered(op, BitsFloat(dt, x), BitsFloat(dt, y))
	case dt.IsSigned():
		return ordered(op, signExtend(dt, x), signExtend(dt, y))
	}
	return ordered(op, x, y)
}

func ordered[T int64 | uint64 | float64](op Op, x, y T) bool {
	switch op {
	case Eq:
		return x == y
	case Ne:
		return x != y
	case Lt:
		return x < y
	case Le:
		return x <= y
	case Gt:
		return x > y
	}
	return x >= y
}

// convertBits converts a value in range. Integers become the nearest float in
// one rounding; floats lose their fraction; the widest integers of either
// sign saturate where a caller broke the range, so that the result does not
// depend on the machine.
func convertBits(to, from DType, x uint64) uint64 {
	switch {
	case from.IsFloat() && to.IsFloat():
		return FloatBits(to, BitsFloat(from, x))
	case from.IsFloat():
		v := BitsFloat(from, x)
		switch {
		case v != v:
			return 0
		case v >= 1<<63:
			if to.IsSigned() {
				return math.MaxInt64 & widthMask(to)
			}
			if v >= 1<<64 {
				return widthMask(to)
			}
			return uint64(v) & widthMask(to)
		case v <= -(1 << 63):
			return 1 << 63 & widthMask(to)
		}
		return uint64(int64(v)) & widthMask(to)
	case to == Float64 && from.IsSigned():
		return f64bits(float64(signExtend(from, x)))
	case to == Float64:
		return f64bits(float64(x))
	case to == Float32 && from.IsSigned():
		return uint64(math.Float32bits(float32(signExtend(from, x))))
	case to == Float32:
		return uint64(math.Float32bits(uintToFloat32(x)))
	case from.IsSigned():
		return uint64(signExtend(from, x)) & widthMask(to)
	}
	return x & widthMask(to)
}

// uintToFloat32 rounds once. Values above 2^63 lose their lowest bit to a
// sticky bit first, because hardware converts signed integers only.
func uintToFloat32(x uint64) float32 {
	if bits.LeadingZeros64(x) > 0 {
		return float32(int64(x))
	}
	return float32(2 * float32(int64(x>>1|x&1)))
}

func lookupBits(id, index uint64) uint64 {
	t := TableByID(id)
	if t == nil || uint64(uint32(index)) >= uint64(len(t.Bits)) {
		return 0
	}
	return t.Bits[uint32(index)]
}
