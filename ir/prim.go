package ir

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
)

// prim is the meaning of a primitive on bit patterns: every value is held in its dtype's bits,
// zero-extended. Operands that the primitive does not have are 0.
type prim func(x, y, z uint64) uint64

// primitives are each defined once for the dtypes they have: by the dtype of the result,
// comparisons by that of their operands, conversions by both. Const, Lookup and Rare depend on more
// than values; EvalPrim and EvalPrims handle them.
type primitives struct {
	prims, comparisons [NumDTypes][NumOps]prim
	conversions        [NumDTypes][NumDTypes]prim // to, from
}

// allPrims makes them at their first use, because most programs never evaluate primitives here.
var allPrims = [...]func() *primitives{
	KeepDenormals:  sync.OnceValue(func() *primitives { return makePrims(&prims32, &prims64) }),
	FlushDenormals: sync.OnceValue(func() *primitives { return flushing(makePrims(&flushPrims32, &flushPrims64)) }),
}

func makePrims(floats, doubles *[NumOps]prim) *primitives {
	all := &primitives{}
	for dt := Bool; dt < NumDTypes; dt++ {
		prims := &all.prims[dt]
		switch dt {
		case Float32:
			*prims = *floats
		case Float64:
			*prims = *doubles
		default:
			*prims = intPrims(dt)
		}
		prims[Where] = func(mask, x, y uint64) uint64 {
			if mask != 0 {
				return x
			}
			return y
		}
		prims[Bitcast] = func(x, _, _ uint64) uint64 { return x }
		all.comparisons[dt] = comparisonsOf(dt)
		for from := Bool; from < NumDTypes; from++ {
			all.conversions[dt][from] = conversion(dt, from)
		}
	}
	return all
}

// primOf finds the primitive of an instruction. from is the dtype of its first operand.
func (d Denormals) primOf(op Op, dt, from DType) prim {
	all := allPrims[d]()
	f := all.prims[dt][op]
	if f == nil {
		if op == Convert {
			f = all.conversions[dt][from]
		} else {
			f = all.comparisons[from][op]
		}
	}
	if f == nil {
		panic(fmt.Sprintf("ir: %v is not a primitive of %v", op, dt))
	}
	return f
}

// EvalPrim computes one primitive on one element. argDT are the operands' dtypes, args their bits.
// Operands that an op calls out of range (see the comments at the ops) give some defined result
// here, so that wrong programs fail in comparisons rather than by a fault. Param, Load, Scalar and
// the indices get their value from outside and cannot be evaluated; passing one is a bug of the
// caller and panics.
func EvalPrim(in Instr, argDT []DType, args []uint64) uint64 {
	return KeepDenormals.EvalPrim(in, argDT, args)
}

// EvalPrim is the function EvalPrim with denormals treated as d says.
func (d Denormals) EvalPrim(in Instr, argDT []DType, args []uint64) uint64 {
	switch in.Op {
	case Const:
		return in.Imm
	case Lookup:
		return lookupBits(TableByID(in.Imm), args[0])
	case Rare:
		if args[0] == 0 {
			return args[1]
		}
		return d.evalFirst(SubByID(in.Imm), args[2:])
	}
	var y, z uint64
	if len(args) > 1 {
		y = args[1]
	}
	if len(args) > 2 {
		z = args[2]
	}
	return d.primOf(in.Op, in.DT, argDT[0])(args[0], y, z)
}

// EvalPrims is [EvalPrim] for every element of out, from the corresponding elements of args: the
// instruction is decoded only once.
func EvalPrims(in Instr, argDT []DType, args [][]uint64, out []uint64) {
	KeepDenormals.EvalPrims(in, argDT, args, out)
}

// EvalPrims is the function EvalPrims with denormals treated as d says.
func (d Denormals) EvalPrims(in Instr, argDT []DType, args [][]uint64, out []uint64) {
	switch in.Op {
	case Const:
		for i := range out {
			out[i] = in.Imm
		}
		return
	case Lookup:
		t := TableByID(in.Imm)
		for i, x := range args[0][:len(out)] {
			out[i] = lookupBits(t, x)
		}
		return
	case Rare:
		copy(out, args[1])
		d.rare(SubByID(in.Imm), args[0], args[2:], out)
		return
	}
	f := d.primOf(in.Op, in.DT, argDT[0])
	switch len(args) {
	case 1:
		for i, x := range args[0][:len(out)] {
			out[i] = f(x, 0, 0)
		}
	case 2:
		y := args[1][:len(out)]
		for i, x := range args[0][:len(out)] {
			out[i] = f(x, y[i], 0)
		}
	case 3:
		y, z := args[1][:len(out)], args[2][:len(out)]
		for i, x := range args[0][:len(out)] {
			out[i] = f(x, y[i], z[i])
		}
	}
}

// rare runs a sub-program on the elements for which the mask is set. It first copies these elements
// of args next to each other.
func (d Denormals) rare(sub *Prog, mask []uint64, args [][]uint64, out []uint64) {
	var at []int
	for i := range out {
		if mask[i] != 0 {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return
	}
	some := make([][]uint64, len(args))
	for k := range args {
		some[k] = make([]uint64, len(at))
		for j, i := range at {
			some[k][j] = args[k][i]
		}
	}
	results := make([]uint64, len(at))
	d.evalRows(sub, some, results)
	for j, i := range at {
		out[i] = results[j]
	}
}

func boolBit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func f32(b uint64) float32     { return math.Float32frombits(uint32(b)) }
func f32bits(x float32) uint64 { return uint64(math.Float32bits(x)) }

// prims32 rounds every operation to float32 separately: the conversions keep a compiler from
// contracting operations or using a wider type.
var prims32 = [NumOps]prim{
	Add:  func(x, y, _ uint64) uint64 { return f32bits(float32(f32(x) + f32(y))) },
	Sub:  func(x, y, _ uint64) uint64 { return f32bits(float32(f32(x) - f32(y))) },
	Mul:  func(x, y, _ uint64) uint64 { return f32bits(float32(f32(x) * f32(y))) },
	FDiv: func(x, y, _ uint64) uint64 { return f32bits(float32(f32(x) / f32(y))) },
	FMA:  func(x, y, z uint64) uint64 { return f32bits(FMA32(f32(x), f32(y), f32(z))) },
	Neg:  func(x, _, _ uint64) uint64 { return uint64(uint32(x) ^ 1<<31) },
	Abs:  func(x, _, _ uint64) uint64 { return uint64(uint32(x) &^ (1 << 31)) },
	// With 53 bits the second rounding is harmless.
	Sqrt:  func(x, _, _ uint64) uint64 { return f32bits(float32(math.Sqrt(float64(f32(x))))) },
	Floor: func(x, _, _ uint64) uint64 { return f32bits(float32(math.Floor(float64(f32(x))))) },
	Ceil:  func(x, _, _ uint64) uint64 { return f32bits(float32(math.Ceil(float64(f32(x))))) },
	Round: func(x, _, _ uint64) uint64 { return f32bits(float32(math.RoundToEven(float64(f32(x))))) },
	Trunc: func(x, _, _ uint64) uint64 { return f32bits(float32(math.Trunc(float64(f32(x))))) },
}

func f64(b uint64) float64     { return math.Float64frombits(b) }
func f64bits(x float64) uint64 { return math.Float64bits(x) }

var prims64 = [NumOps]prim{
	Add:   func(x, y, _ uint64) uint64 { return f64bits(float64(f64(x) + f64(y))) },
	Sub:   func(x, y, _ uint64) uint64 { return f64bits(float64(f64(x) - f64(y))) },
	Mul:   func(x, y, _ uint64) uint64 { return f64bits(float64(f64(x) * f64(y))) },
	FDiv:  func(x, y, _ uint64) uint64 { return f64bits(float64(f64(x) / f64(y))) },
	FMA:   func(x, y, z uint64) uint64 { return f64bits(math.FMA(f64(x), f64(y), f64(z))) },
	Neg:   func(x, _, _ uint64) uint64 { return x ^ 1<<63 },
	Abs:   func(x, _, _ uint64) uint64 { return x &^ (1 << 63) },
	Sqrt:  func(x, _, _ uint64) uint64 { return f64bits(math.Sqrt(f64(x))) },
	Floor: func(x, _, _ uint64) uint64 { return f64bits(math.Floor(f64(x))) },
	Ceil:  func(x, _, _ uint64) uint64 { return f64bits(math.Ceil(f64(x))) },
	Round: func(x, _, _ uint64) uint64 { return f64bits(math.RoundToEven(f64(x))) },
	Trunc: func(x, _, _ uint64) uint64 { return f64bits(math.Trunc(f64(x))) },
}

// RoundedTwice reports that a sum s = x*y + z of float32 numbers, computed in float64, must not be
// rounded a second time: FMA32 is another number than float32(s), or may be. The product is exact.
// Rounding twice is only wrong if the first rounding ends halfway between two float32 numbers, or if
// the result is a denormal float32.
func RoundedTwice(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) == 1<<28 || b<<1 < 0x381<<53
}

// FMA32 is x*y + z with one rounding. The product is exact in float64. The sum is rounded to odd
// there, which keeps enough of the lost bits for the final rounding to float32 to be right, also
// for denormal results.
func FMA32(x, y, z float32) float32 { return float32(oddSum(x, y, z)) }

// oddSum is x*y + z in float64, rounded to odd.
func oddSum(x, y, z float32) float64 {
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
	return s
}

// intPrims are the primitives of an integer type, and of Bool, whose values are masks of one bit.
// Sums and products wrap.
func intPrims(dt DType) [NumOps]prim {
	m, last, signed := widthMask(dt), uint64(dt.Bits()-1), dt.IsSigned()
	t := [NumOps]prim{
		Add:    func(x, y, _ uint64) uint64 { return (x + y) & m },
		Sub:    func(x, y, _ uint64) uint64 { return (x - y) & m },
		Mul:    func(x, y, _ uint64) uint64 { return x * y & m },
		Neg:    func(x, _, _ uint64) uint64 { return -x & m },
		Abs:    func(x, _, _ uint64) uint64 { return x },
		And:    func(x, y, _ uint64) uint64 { return x & y },
		Or:     func(x, y, _ uint64) uint64 { return x | y },
		Xor:    func(x, y, _ uint64) uint64 { return x ^ y },
		Not:    func(x, _, _ uint64) uint64 { return ^x & m },
		Quo:    func(x, y, _ uint64) uint64 { return divideBits(Quo, dt, x, y) & m },
		Mod:    func(x, y, _ uint64) uint64 { return divideBits(Mod, dt, x, y) & m },
		MulHi:  func(x, y, _ uint64) uint64 { return x * y >> 32 },
		ShlRaw: func(x, n, _ uint64) uint64 { return x << (n & last) & m },
		ShrRaw: func(x, n, _ uint64) uint64 { return x >> (n & last) },
	}
	if signed {
		wide := 64 - dt.Bits() // bits to the left of the sign
		t[Abs] = func(x, _, _ uint64) uint64 {
			if int64(x<<wide) < 0 {
				return -x & m
			}
			return x
		}
		t[ShrRaw] = func(x, n, _ uint64) uint64 { return uint64(int64(x<<wide)>>wide>>(n&last)) & m }
	}
	return t
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

func comparisonsOf(dt DType) [NumOps]prim {
	switch {
	case dt == Float32:
		return ordered(f32)
	case dt.IsFloat():
		return ordered(func(x uint64) float64 { return BitsFloat(dt, x) })
	case dt.IsSigned():
		wide := 64 - dt.Bits() // a shift to the left keeps the order
		return ordered(func(x uint64) int64 { return int64(x << wide) })
	}
	return ordered(func(x uint64) uint64 { return x })
}

// ordered are comparisons of the numbers that the bits represent.
func ordered[T int64 | uint64 | float32 | float64](v func(bits uint64) T) [NumOps]prim {
	return [NumOps]prim{
		Eq: func(x, y, _ uint64) uint64 { return boolBit(v(x) == v(y)) },
		Ne: func(x, y, _ uint64) uint64 { return boolBit(v(x) != v(y)) },
		Lt: func(x, y, _ uint64) uint64 { return boolBit(v(x) < v(y)) },
		Le: func(x, y, _ uint64) uint64 { return boolBit(v(x) <= v(y)) },
		Gt: func(x, y, _ uint64) uint64 { return boolBit(v(x) > v(y)) },
		Ge: func(x, y, _ uint64) uint64 { return boolBit(v(x) >= v(y)) },
	}
}

// conversion converts values in range. Integers become the nearest float in one rounding; floats
// lose their fraction. Out of range, the widest integers of either sign saturate, so that the
// result does not depend on the machine.
func conversion(to, from DType) prim {
	m := widthMask(to)
	switch {
	case from.IsFloat() && to.IsFloat():
		return func(x, _, _ uint64) uint64 { return FloatBits(to, BitsFloat(from, x)) }
	case from.IsFloat():
		return func(x, _, _ uint64) uint64 { return truncate(to, BitsFloat(from, x)) & m }
	case to == Float64 && from.IsSigned():
		return func(x, _, _ uint64) uint64 { return f64bits(float64(signExtend(from, x))) }
	case to == Float64:
		return func(x, _, _ uint64) uint64 { return f64bits(float64(x)) }
	case to == Float32 && from.IsSigned():
		return func(x, _, _ uint64) uint64 { return f32bits(float32(signExtend(from, x))) }
	case to == Float32:
		return func(x, _, _ uint64) uint64 { return f32bits(uintToFloat32(x)) }
	case from.IsSigned():
		return func(x, _, _ uint64) uint64 { return uint64(signExtend(from, x)) & m }
	}
	return func(x, _, _ uint64) uint64 { return x & m }
}

// truncate is the integer part of a float, saturated at 64 bits; the caller keeps the low bits.
func truncate(to DType, v float64) uint64 {
	switch {
	case v != v:
		return 0
	case v >= 1<<63:
		if to.IsSigned() {
			return math.MaxInt64
		}
		if v >= 1<<64 {
			return math.MaxUint64
		}
		return uint64(v)
	case v <= -(1 << 63):
		return 1 << 63
	}
	return uint64(int64(v))
}

// uintToFloat32 rounds once. Hardware converts signed integers only. So values from 2^63 on are
// halved first, and their lowest bit is kept as a sticky bit.
func uintToFloat32(x uint64) float32 {
	if bits.LeadingZeros64(x) > 0 {
		return float32(int64(x))
	}
	return float32(2 * float32(int64(x>>1|x&1)))
}

func lookupBits(t *Table, index uint64) uint64 {
	if t == nil || uint64(uint32(index)) >= uint64(len(t.Bits)) {
		return 0
	}
	return t.Bits[uint32(index)]
}
