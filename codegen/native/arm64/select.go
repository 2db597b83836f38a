package arm64

import (
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// Primitives of arm64. Masks are vectors, as on AVX2: all bits of a lane, with lanes as wide as the
// widest value. For vectors narrower than a register, the register's upper half is undefined.

var (
	nAdds  = native.Row{nFadd, nFadd | wide, nAdd, nAdd | wide}
	nSubs  = native.Row{nFsub, nFsub | wide, nSub, nSub | wide}
	nMuls  = native.Row{nFmul, nFmul | wide}
	nDivs  = native.Row{nFdiv, nFdiv | wide}
	nSqrts = native.Row{nFsqrt, nFsqrt | wide}
	nFmas  = native.Row{nFmla, nFmla | wide}
	nNegs  = native.Row{nFneg, nFneg | wide, nNeg, nNeg | wide}
	nAbss  = native.Row{nFabs, nFabs | wide, nAbs, nAbs | wide}
	nAnds  = native.Row{nAnd, nAnd, nAnd, nAnd}
	nOrs   = native.Row{nOrr, nOrr, nOrr, nOrr}
	nXors  = native.Row{nEor, nEor, nEor, nEor}
)

var primitives = [ir.NumOps]primitive{
	ir.Add:    direct(&nAdds),
	ir.Sub:    direct(&nSubs),
	ir.Mul:    neonMultiply,
	ir.FDiv:   direct(&nDivs),
	ir.Sqrt:   neonUnary(&nSqrts),
	ir.FMA:    neonScaling(&nFmas),
	ir.Neg:    neonUnary(&nNegs),
	ir.Abs:    neonAbsolute,
	ir.Floor:  neonRounded(nFrintm),
	ir.Ceil:   neonRounded(nFrintp),
	ir.Trunc:  neonRounded(nFrintz),
	ir.Round:  neonRounded(nFrintn),
	ir.Quo:    neonQuotient,
	ir.Mod:    neonQuotient,
	ir.MulHi:  neonMulHigh,
	ir.And:    direct(&nAnds),
	ir.Or:     direct(&nOrs),
	ir.Xor:    direct(&nXors),
	ir.Not:    neonComplement,
	ir.ShlRaw: neonShift,
	ir.ShrRaw: neonShift,
	ir.Eq:     neonCompare,
	ir.Ne:     neonCompare,
	ir.Lt:     neonCompare,
	ir.Le:     neonCompare,
	ir.Gt:     neonCompare,
	ir.Ge:     neonCompare,
	ir.Where:  neonChoose,
}

// n1, n2 and n3 append instructions with one, two and three operands, and a result of n bytes.
func (c *machine) n1(o native.Op, n int, x native.Value) native.Value    { return c.Op2(o, n, n, x) }
func (c *machine) n2(o native.Op, n int, x, y native.Value) native.Value { return c.Op3(o, n, x, y) }

func (c *machine) n3(o native.Op, n int, x, y, tied native.Value) native.Value {
	return c.Item(native.Item{O: o, Size: n, D: c.Vec(n), S: [3]native.Value{x, y, tied}, Imm: native.NoImm})
}

// nShifted shifts by a constant.
func (c *machine) nShifted(o native.Op, n int, x native.Value, by int16) native.Value {
	return c.Op2i(o, n, n, x, by)
}

func neonUnary(r *native.Row) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		return c.Wrapped(in.DT, c.n1(r[native.Kinds[in.DT]], c.Bytes(in.DT), x[0]))
	}
}

var neonProduct = neonScaling(&nMuls)

func neonMultiply(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	n := c.Bytes(in.DT)
	switch native.Kinds[in.DT] {
	case native.F32, native.F64:
		return neonProduct(c, in, x, dts)
	case native.I32:
		return c.Wrapped(in.DT, c.n2(nMul, n, x[0], x[1]))
	}
	// The product of the low halves, plus the sum of the cross products shifted by 32 bits.
	cross := c.n1(nUaddlp, n, c.n2(nMul, n, c.n1(nRev64, n, x[1]), x[0]))
	low := c.n2(nUmull, n, c.Op2(nXtn, n, n/2, x[0]), c.Op2(nXtn, n, n/2, x[1]))
	return c.n2(nAdd|wide, n, low, c.nShifted(nShl|wide, n, cross, 32))
}

// neonMulHigh is the high half of products of 32 bits.
func neonMulHigh(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	n := c.Bytes(in.DT)
	low, high := c.n2(nUmull, 16, x[0], x[1]), c.n2(nUmull2, 16, x[0], x[1])
	return c.n2(nUzp2, n, low, high)
}

func neonAbsolute(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	if in.DT.IsInt() && !in.DT.IsSigned() {
		return x[0]
	}
	return neonUnary(&nAbss)(c, in, x, dts)
}

func neonRounded(narrow native.Op) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		if in.DT.IsInt() {
			return x[0]
		}
		o := narrow
		if in.DT == ir.Float64 {
			o |= wide
		}
		return c.n1(o, c.Bytes(in.DT), x[0])
	}
}

func neonComplement(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	return c.Wrapped(in.DT, c.n1(nMvn, c.Bytes(in.DT), x[0]))
}

// neonShift uses shifts to the left, since arm64 has no others by a vector; the distance may be
// negative.
func neonShift(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	k, n, by, o := native.Kinds[in.DT], c.Bytes(in.DT), x[1], nUshl
	if in.Op == ir.ShrRaw {
		by = c.n1(nNegs[k], n, by)
		if in.DT.IsSigned() {
			o = nSshl
		}
	}
	if k == native.I64 {
		o |= wide
	}
	return c.Wrapped(in.DT, c.n2(o, n, x[0], by))
}

func neonChoose(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	n := c.Bytes(in.DT)
	return c.n3(nBsl, n, x[1], x[2], c.LanesAs(x[0], n))
}

func neonCompare(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	dt, a, b := dts[0], x[0], x[1]
	n := c.Bytes(dt)
	if dt == ir.Bool {
		differ := c.n2(nEor, n, a, b)
		switch in.Op {
		case ir.Ne:
			return differ
		case ir.Eq:
			return c.n1(nMvn, n, differ)
		}
		c.Fail("%v cannot take masks", in.Op)
		return differ
	}
	o := in.Op
	if o == ir.Lt || o == ir.Le {
		a, b = b, a
		o = map[ir.Op]ir.Op{ir.Lt: ir.Gt, ir.Le: ir.Ge}[o]
	}
	var r native.Op
	switch greater := o == ir.Gt; {
	case o == ir.Eq || o == ir.Ne:
		r = nCmeq
		if dt == ir.Float32 || dt == ir.Float64 {
			r = nFcmeq
		}
	case dt == ir.Float32 || dt == ir.Float64:
		if r = nFcmge; greater {
			r = nFcmgt
		}
	case dt.IsSigned():
		if r = nCmge; greater {
			r = nCmgt
		}
	default:
		if r = nCmhs; greater {
			r = nCmhi
		}
	}
	if native.SizeOf(dt) == 8 {
		r |= wide
	}
	m := c.AsMask(c.n2(r, n, a, b))
	if o == ir.Ne {
		m = c.n1(nMvn, c.Bytes(ir.Bool), m)
	}
	return m
}

// neonQuotient need not test divisors: arm64 gives 0 for a division by 0, and does not fault.
func neonQuotient(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	size, signed := native.SizeOf(in.DT), in.DT.IsSigned()
	return c.EachLane(in.DT, x, func(x []native.Mem, d native.Mem) {
		c.LoadSize(size, signed, native.RAX, x[0])
		c.LoadSize(size, signed, native.RBX, x[1])
		c.divide(signed, native.R15, native.RAX, native.RBX)
		if in.Op == ir.Mod {
			c.lessProduct(native.R15, native.R15, native.RBX, native.RAX)
		}
		c.StoreSize(size, d, native.R15)
	})
}

// neonChange converts between dtypes of which one has 64 bits or is a float.
func (c *machine) Change(from, to ir.DType, v native.Value) native.Value {
	n := max(c.Bytes(from), c.Bytes(to))
	widened := func(signed bool, v native.Value) native.Value {
		if signed {
			return c.n1(nSxtl, n, v)
		}
		return c.n1(nUxtl, n, v)
	}
	signed := func(s, u native.Op, dt ir.DType) native.Op {
		if dt.IsSigned() {
			return s
		}
		return u
	}
	switch a, b := native.SizeOf(from), native.SizeOf(to); {
	case from.IsInt() && to.IsInt() && a == b:
		return v
	case from.IsInt() && to.IsInt() && a == 8:
		return c.Halved(v)
	case from.IsInt() && to.IsInt():
		return widened(from.IsSigned(), v)
	case from == ir.Float32 && to == ir.Float64:
		return c.n1(nFcvtl, n, v)
	case from == ir.Float64 && to == ir.Float32:
		return c.neonNarrow(v)
	case from.IsInt() && a == 4 && b == 4:
		return c.n1(signed(nScvtf, nUcvtf, from), n, v)
	case from.IsInt() && b == 8:
		if a == 4 {
			v = widened(from.IsSigned(), v)
		}
		return c.n1(signed(nScvtf, nUcvtf, from)|wide, n, v)
	case from.IsInt(): // 64 bits to Float32, with one rounding
		return c.EachLane(to, []native.Value{v}, func(x []native.Mem, d native.Mem) {
			c.Load(native.RAX, x[0])
			c.toFloat32(from.IsSigned(), c.LaneReg, native.RAX)
			c.moveVec(c.LaneReg, 4, d, false)
		})
	case a == 4 && b == 4:
		return c.n1(signed(nFcvtzs, nFcvtzu, to), n, v)
	case to.IsInt() && b == 8:
		if a == 4 {
			v = c.n1(nFcvtl, n, v)
		}
		return c.n1(signed(nFcvtzs, nFcvtzu, to)|wide, n, v)
	case from == ir.Float64:
		return c.Halved(c.n1(signed(nFcvtzs, nFcvtzu, to)|wide, n, v))
	}
	c.Fail("the conversion of %v to %v is not supported", from, to)
	return v
}

// ChoiceOp: arm64's minimum of floats is that of IEEE, which is not a Where.
func (c *machine) ChoiceOp(dt ir.DType, smaller bool) native.Op {
	switch signed := dt.IsSigned(); {
	case dt.IsFloat(), native.SizeOf(dt) == 8:
		return native.OpNone
	case smaller && signed:
		return nSmin
	case smaller:
		return nUmin
	case signed:
		return nSmax
	}
	return nUmax
}

// primitive makes the value of an instruction.
type primitive func(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value

func direct(r *native.Row) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		return c.Wrapped(in.DT, c.Op3(r[native.Kinds[in.DT]], c.Bytes(in.DT), x[0], x[1]))
	}
}

func (c *machine) Primitive(in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	return primitives[in.Op](c, in, x, dts)
}

func (c *machine) BitAnd(n int, x, y native.Value) native.Value { return c.n2(nAnd, n, x, y) }

func (c *machine) Extended(n int, x native.Value, by int16) native.Value {
	return c.nShifted(nSshr, n, c.nShifted(nShl, n, x, by), by)
}

func (c *machine) SignExtended(n int, v native.Value) native.Value { return c.n1(nSxtl, n, v) }

func (c *machine) Halved(x native.Value) native.Value { return c.Op2(nXtn, 16, 8, x) }

func (c *machine) Choice(m native.Value, n, elem int, bits uint64) native.Value {
	set := c.Splat(elem, bits, n)
	return c.BitAnd(n, c.LanesAs(m, n), set)
}

func (c *machine) ConstantOf(elem, _ int) (count int, one bool) {
	return c.ISA.Bytes / elem, false
}

func (c *machine) LoadItem(it native.Item) native.Value {
	return c.Item(native.Item{D: it.D, Imm: native.NoImm, Emit: func(r *native.Regs) {
		it.Before()
		c.LoadVec(r.D, it.Size, it.Mem)
	}})
}

func (c *machine) StoreItem(it native.Item) {
	c.Item(native.Item{S: [3]native.Value{it.S[0]}, Imm: native.NoImm, Emit: func(r *native.Regs) {
		it.Before()
		c.StoreVec(it.Mem, it.Size, r.S[0])
	}})
}
