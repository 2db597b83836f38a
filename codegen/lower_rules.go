package codegen

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// rule is one exact rewrite: it computes the value of in by other means, with the same bits for all
// operands. All NaNs are equal, and the sign of zero counts. So most rules of school algebra are
// not here: x+0 is not x if x is -0.
type rule struct {
	op  ir.Op
	law string
	try func(s *simplifier, in ir.Instr) (ir.Ref, bool)
}

var rules = []rule{
	{ir.Neg, "-(-x) = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.under(in.Args[0], ir.Neg)
	}},
	{ir.Abs, "||x|| = |x|", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[0], s.is(in.Args[0], ir.Abs)
	}},
	{ir.Abs, "|x| = x, x unsigned", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[0], !in.DT.IsSigned()
	}},
	{ir.Abs, "|-x| = |x|", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x, ok := s.under(in.Args[0], ir.Neg)
		return s.ifOK(ok, ir.Abs, in.DT, x)
	}},

	// Rounding to nearest is symmetric, so signs move through products.
	{ir.Mul, "(-x)*y = -(x*y)", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.signOut(in, 0) }},
	{ir.Mul, "x*(-y) = -(x*y)", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.signOut(in, 1) }},
	{ir.FDiv, "(-x)/y = -(x/y)", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.signOut(in, 0) }},
	{ir.FDiv, "x/(-y) = -(x/y)", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.signOut(in, 1) }},
	{ir.FMA, "(-x)*(-y)+z = x*y+z", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x, ok := s.under(in.Args[0], ir.Neg)
		y, ok2 := s.under(in.Args[1], ir.Neg)
		return s.ifOK(ok && ok2, ir.FMA, in.DT, x, y, in.Args[2])
	}},
	{ir.Mul, "|x|*|x| = x*x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x, ok := s.under(in.Args[0], ir.Abs)
		return s.ifOK(ok && in.Args[0] == in.Args[1], ir.Mul, in.DT, x, x)
	}},
	{ir.Mul, "x*1 = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x, ok := s.other(in, ir.OneBits(in.DT))
		return s.same(ok, x)
	}},
	{ir.Mul, "x*(-1) = -x, where denormals are flushed", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		if !s.denormals.Flushes(in.DT) { // nothing is gained
			return ir.None, false
		}
		x, ok := s.other(in, ir.OneBits(in.DT)|negZeroBits(in.DT))
		if x, ok = s.same(ok, x); !ok {
			return ir.None, false
		}
		return s.ifOK(true, ir.Neg, in.DT, x)
	}},
	{ir.FDiv, "x/2^k = x*2^-k, both normal", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		inv, ok := s.exactInverse(in.Args[1])
		if !ok {
			return ir.None, false
		}
		return s.ifOK(true, ir.Mul, in.DT, in.Args[0], s.constant(in.DT, inv))
	}},

	// x - y is defined as x + (-y).
	{ir.Add, "x+(-y) = x-y", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		y, ok := s.under(in.Args[1], ir.Neg)
		return s.ifOK(ok, ir.Sub, in.DT, in.Args[0], y)
	}},
	{ir.Add, "(-x)+y = y-x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x, ok := s.under(in.Args[0], ir.Neg)
		return s.ifOK(ok, ir.Sub, in.DT, in.Args[1], x)
	}},
	{ir.Sub, "x-(-y) = x+y", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		y, ok := s.under(in.Args[1], ir.Neg)
		return s.ifOK(ok, ir.Add, in.DT, in.Args[0], y)
	}},
	{ir.Add, "x+(-0) = x; integers: x+0 = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x, ok := s.other(in, negZeroBits(in.DT))
		return s.same(ok, x)
	}},
	{ir.Sub, "x-0 = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.same(s.isConst(in.Args[1], 0), in.Args[0])
	}},
	{ir.Sub, "x-x = 0, integers", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.zeroIf(in.Args[0] == in.Args[1] && in.DT.IsInt(), in.DT)
	}},

	{ir.Flush, "of what is no denormal", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[0], s.clean(in.Args[0])
	}},

	{ir.Maximum, "max(x,x) = x", sameOperands},
	{ir.Minimum, "min(x,x) = x", sameOperands},
	{ir.And, "x&x = x", sameOperands},
	{ir.Or, "x|x = x", sameOperands},
	{ir.Xor, "x^x = 0", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.zeroIf(in.Args[0] == in.Args[1], in.DT)
	}},
	{ir.And, "x&11..1 = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.other(in, allOnes(in.DT)) }},
	{ir.Or, "x|0 = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.other(in, 0) }},
	{ir.And, "x&0 = 0", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		_, ok := s.other(in, 0)
		return s.zeroIf(ok, in.DT)
	}},
	{ir.Or, "x|11..1 = 11..1", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		_, ok := s.other(in, allOnes(in.DT))
		return s.onesIf(ok, in.DT)
	}},
	{ir.Not, "not not x = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.under(in.Args[0], ir.Not)
	}},
	{ir.Not, "not x=y is x≠y", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.opposite(in, ir.Eq, ir.Ne) }},
	{ir.Not, "not x≠y is x=y", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.opposite(in, ir.Ne, ir.Eq) }},

	{ir.Gt, "x>y is y<x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.ifOK(true, ir.Lt, in.DT, in.Args[1], in.Args[0])
	}},
	{ir.Ge, "x>=y is y<=x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.ifOK(true, ir.Le, in.DT, in.Args[1], in.Args[0])
	}},
	{ir.Eq, "x=x is true, not floats", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.boolIf(in.Args[0] == in.Args[1] && !s.code[in.Args[0]].DT.IsFloat(), 1)
	}},
	{ir.Ne, "x≠x is false, not floats", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return s.boolIf(in.Args[0] == in.Args[1] && !s.code[in.Args[0]].DT.IsFloat(), 0)
	}},

	{ir.Where, "c ? x : x = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[1], in.Args[1] == in.Args[2]
	}},
	{ir.Where, "true ? x : y = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[1], s.isConst(in.Args[0], 1)
	}},
	{ir.Where, "false ? x : y = y", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[2], s.isConst(in.Args[0], 0)
	}},
	{ir.Where, "not c ? x : y = c ? y : x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		c, ok := s.under(in.Args[0], ir.Not)
		return s.ifOK(ok, ir.Where, in.DT, c, in.Args[2], in.Args[1])
	}},
	{ir.Where, "c ? (c ? x : y) : z = c ? x : z", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x := s.code[in.Args[1]]
		return s.ifOK(x.Op == ir.Where && x.Args[0] == in.Args[0], ir.Where, in.DT, in.Args[0], x.Args[1], in.Args[2])
	}},
	{ir.Where, "c ? x : (c ? y : z) = c ? x : z", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		y := s.code[in.Args[2]]
		return s.ifOK(y.Op == ir.Where && y.Args[0] == in.Args[0], ir.Where, in.DT, in.Args[0], in.Args[1], y.Args[2])
	}},
	{ir.Where, "c ? true : false = c", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[0], in.DT == ir.Bool && s.isConst(in.Args[1], 1) && s.isConst(in.Args[2], 0)
	}},
	{ir.Rare, "rarely false: the fast value", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		return in.Args[1], s.isConst(in.Args[0], 0)
	}},

	// A conversion depends on the value alone. So a conversion that keeps every value may be skipped
	// before another one.
	{ir.Cast, "a cast to the same type does nothing", sameType},
	{ir.Convert, "a conversion to the same type does nothing", sameType},
	{ir.Bitcast, "a bitcast to the same type does nothing", sameType},
	{ir.Cast, "a cast after one that loses nothing", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.skipWide(in) }},
	{ir.Convert, "a conversion after one that loses nothing", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return s.skipWide(in) }},
	{ir.Bitcast, "a bitcast of a bitcast", func(s *simplifier, in ir.Instr) (ir.Ref, bool) {
		x, ok := s.under(in.Args[0], ir.Bitcast)
		return s.ifOK(ok, ir.Bitcast, in.DT, x)
	}},

	{ir.Floor, "an integral value rounds to itself", integral},
	{ir.Ceil, "an integral value rounds to itself", integral},
	{ir.Round, "an integral value rounds to itself", integral},
	{ir.Trunc, "an integral value rounds to itself", integral},
	{ir.ShlRaw, "x<<0 = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return in.Args[0], s.isConst(in.Args[1], 0) }},
	{ir.ShrRaw, "x>>0 = x", func(s *simplifier, in ir.Instr) (ir.Ref, bool) { return in.Args[0], s.isConst(in.Args[1], 0) }},
}

// rulesOf holds the rules of each op in the order above. init fills it, because the rules call the
// simplifier, which reads it.
var rulesOf [ir.NumOps][]rule

func init() {
	for _, r := range rules {
		rulesOf[r.op] = append(rulesOf[r.op], r)
	}
}

func sameOperands(s *simplifier, in ir.Instr) (ir.Ref, bool) {
	return in.Args[0], in.Args[0] == in.Args[1]
}

func sameType(s *simplifier, in ir.Instr) (ir.Ref, bool) {
	return in.Args[0], s.code[in.Args[0]].DT == in.DT
}

func integral(s *simplifier, in ir.Instr) (ir.Ref, bool) {
	switch s.code[in.Args[0]].Op {
	case ir.Floor, ir.Ceil, ir.Round, ir.Trunc:
		return in.Args[0], true
	}
	return ir.None, false
}

func (s *simplifier) is(r ir.Ref, op ir.Op) bool { return s.code[r].Op == op }

// under is the operand of r if r is made by op.
func (s *simplifier) under(r ir.Ref, op ir.Op) (ir.Ref, bool) {
	return s.code[r].Args[0], s.code[r].Op == op
}

func (s *simplifier) isConst(r ir.Ref, bits uint64) bool {
	return s.code[r].Op == ir.Const && s.code[r].Imm == bits
}

// other is the other operand of a commutative op with a constant.
func (s *simplifier) other(in ir.Instr, bits uint64) (ir.Ref, bool) {
	if s.isConst(in.Args[0], bits) {
		return in.Args[1], true
	}
	return in.Args[0], s.isConst(in.Args[1], bits)
}

// same is the result of arithmetic that does not change x, except that it flushes x if denormals are
// flushed.
func (s *simplifier) same(ok bool, x ir.Ref) (ir.Ref, bool) {
	if !ok || !s.denormals.Flushes(s.code[x].DT) || s.clean(x) {
		return x, ok
	}
	return s.ifOK(true, ir.Flush, s.code[x].DT, x)
}

func (s *simplifier) constant(dt ir.DType, bits uint64) ir.Ref {
	return s.emit(ir.Instr{Op: ir.Const, DT: dt, Imm: bits, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}})
}

func (s *simplifier) ifOK(ok bool, op ir.Op, dt ir.DType, args ...ir.Ref) (ir.Ref, bool) {
	if !ok {
		return ir.None, false
	}
	in := ir.Instr{Op: op, DT: dt, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	copy(in.Args[:], args)
	return s.emit(in), true
}

func (s *simplifier) zeroIf(ok bool, dt ir.DType) (ir.Ref, bool) {
	if !ok {
		return ir.None, false
	}
	return s.constant(dt, 0), true
}

func (s *simplifier) onesIf(ok bool, dt ir.DType) (ir.Ref, bool) {
	if !ok {
		return ir.None, false
	}
	return s.constant(dt, allOnes(dt)), true
}

func (s *simplifier) boolIf(ok bool, bit uint64) (ir.Ref, bool) {
	if !ok {
		return ir.None, false
	}
	return s.constant(ir.Bool, bit), true
}

func (s *simplifier) signOut(in ir.Instr, arg int) (ir.Ref, bool) {
	x, ok := s.under(in.Args[arg], ir.Neg)
	if !ok {
		return ir.None, false
	}
	in.Args[arg] = x
	return s.ifOK(true, ir.Neg, in.DT, s.emit(in))
}

func (s *simplifier) opposite(in ir.Instr, op, not ir.Op) (ir.Ref, bool) {
	c := s.code[in.Args[0]]
	return s.ifOK(c.Op == op, not, ir.Bool, c.Args[0], c.Args[1])
}

func (s *simplifier) skipWide(in ir.Instr) (ir.Ref, bool) {
	mid := s.code[in.Args[0]]
	ok := mid.Op == in.Op && lossless(s.code[mid.Args[0]].DT, mid.DT)
	// Conversions flush their operand, so one must remain.
	ok = ok && !(s.denormals.Flushes(in.DT) && s.code[mid.Args[0]].DT == in.DT && !s.clean(mid.Args[0]))
	// Conversions from and to a storage dtype must not be joined.
	ok = ok && (s.code[mid.Args[0]].DT == in.DT || !s.code[mid.Args[0]].DT.Storage() && !in.DT.Storage())
	return s.ifOK(ok, in.Op, in.DT, mid.Args[0])
}

// lossless reports that every value of one dtype is a value of the other.
func lossless(from, to ir.DType) bool {
	if from.Storage() {
		return to == from.Compute() || to == ir.Float64
	}
	switch from {
	case ir.Bool:
		return to != ir.Bool
	case ir.Uint8:
		return to.Size() > 1
	case ir.Int32:
		return to == ir.Int64 || to == ir.Float64
	case ir.Uint32:
		return to == ir.Int64 || to == ir.Uint64 || to == ir.Float64
	case ir.Float32:
		return to == ir.Float64
	}
	return false
}

// exactInverse is the reciprocal of a constant power of two. Division and multiplication then round
// the same exact number. Both constants must be normal, so that a device that flushes denormals
// gives the same result, too.
func (s *simplifier) exactInverse(r ir.Ref) (uint64, bool) {
	c := s.code[r]
	if c.Op != ir.Const {
		return 0, false
	}
	switch c.DT {
	case ir.Float32:
		exp := c.Imm >> 23 & 0xff
		if c.Imm&(1<<23-1) == 0 && exp > 0 && exp < 254 {
			return c.Imm&(1<<31) | (254-exp)<<23, true
		}
	case ir.Float64:
		exp := c.Imm >> 52 & 0x7ff
		if c.Imm&(1<<52-1) == 0 && exp > 0 && exp < 2046 {
			return c.Imm&(1<<63) | (2046-exp)<<52, true
		}
	}
	return 0, false
}

// negZeroBits is the neutral element of sums: -0 for floats, else 0.
func negZeroBits(dt ir.DType) uint64 {
	if dt.IsFloat() {
		return 1 << (dt.Bits() - 1)
	}
	return 0
}

func allOnes(dt ir.DType) uint64 {
	if dt == ir.Bool {
		return 1
	}
	return math.MaxUint64 >> (64 - dt.Bits())
}
