package native

import "github.com/millrace-go/millrace/ir"

// Primitives of arm64. Masks are vectors, as on AVX2: all bits of a lane, with lanes as wide as the
// widest value. For vectors narrower than a register, the register's upper half is undefined.

var (
	nAdds  = row{nFadd, nFadd | wide, nAdd, nAdd | wide}
	nSubs  = row{nFsub, nFsub | wide, nSub, nSub | wide}
	nMuls  = row{nFmul, nFmul | wide}
	nDivs  = row{nFdiv, nFdiv | wide}
	nSqrts = row{nFsqrt, nFsqrt | wide}
	nFmas  = row{nFmla, nFmla | wide}
	nNegs  = row{nFneg, nFneg | wide, nNeg, nNeg | wide}
	nAbss  = row{nFabs, nFabs | wide, nAbs, nAbs | wide}
	nMins  = row{i32: nSmin}
	nMaxs  = row{i32: nSmax}
	nMinus = row{i32: nUmin}
	nMaxus = row{i32: nUmax}
	nAnds  = row{nAnd, nAnd, nAnd, nAnd}
	nOrs   = row{nOrr, nOrr, nOrr, nOrr}
	nXors  = row{nEor, nEor, nEor, nEor}
)

var neonPrimitives = [ir.NumOps]primitive{
	ir.Add:     direct(&nAdds),
	ir.Sub:     direct(&nSubs),
	ir.Mul:     neonMultiply,
	ir.FDiv:    direct(&nDivs),
	ir.Sqrt:    neonUnary(&nSqrts),
	ir.FMA:     neonScaling(&nFmas),
	ir.Neg:     neonUnary(&nNegs),
	ir.Abs:     neonAbsolute,
	ir.Floor:   neonRounded(nFrintm),
	ir.Ceil:    neonRounded(nFrintp),
	ir.Trunc:   neonRounded(nFrintz),
	ir.Round:   neonRounded(nFrintn),
	ir.Quo:     neonQuotient,
	ir.Mod:     neonQuotient,
	ir.MulHi:   neonMulHigh,
	ir.And:     direct(&nAnds),
	ir.Or:      direct(&nOrs),
	ir.Xor:     direct(&nXors),
	ir.Not:     neonComplement,
	ir.ShlRaw:  neonShift,
	ir.ShrRaw:  neonShift,
	ir.Eq:      neonCompare,
	ir.Ne:      neonCompare,
	ir.Lt:      neonCompare,
	ir.Le:      neonCompare,
	ir.Gt:      neonCompare,
	ir.Ge:      neonCompare,
	ir.Where:   neonChoose,
	ir.Convert: convert,
	ir.Bitcast: bitcast,
	ir.Lookup:  lookup,
	ir.Rare:    rare,
}

// n1, n2 and n3 append instructions with one, two and three operands, and a result of n bytes.
func (c *code) n1(o op, n int, x value) value    { return c.op2(o, n, n, x) }
func (c *code) n2(o op, n int, x, y value) value { return c.op3(o, n, x, y) }

func (c *code) n3(o op, n int, x, y, tied value) value {
	return c.item(item{o: o, size: n, d: c.vec(n), s: [3]value{x, y, tied}, imm: noImm})
}

// nShifted shifts by a constant.
func (c *code) nShifted(o op, n int, x value, by int16) value { return c.op2i(o, n, n, x, by) }

func neonUnary(r *row) primitive {
	return func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		return c.wrapped(in.DT, c.n1(r[kinds[in.DT]], c.bytes(in.DT), x[0]))
	}
}

var neonProduct = neonScaling(&nMuls)

func neonMultiply(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	n := c.bytes(in.DT)
	switch kinds[in.DT] {
	case f32, f64:
		return neonProduct(c, in, x, dts)
	case i32:
		return c.wrapped(in.DT, c.n2(nMul, n, x[0], x[1]))
	}
	// The product of the low halves, plus the sum of the cross products shifted by 32 bits.
	cross := c.n1(nUaddlp, n, c.n2(nMul, n, c.n1(nRev64, n, x[1]), x[0]))
	low := c.n2(nUmull, n, c.op2(nXtn, n, n/2, x[0]), c.op2(nXtn, n, n/2, x[1]))
	return c.n2(nAdd|wide, n, low, c.nShifted(nShl|wide, n, cross, 32))
}

// neonMulHigh is the high half of products of 32 bits.
func neonMulHigh(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	n := c.bytes(in.DT)
	low, high := c.n2(nUmull, 16, x[0], x[1]), c.n2(nUmull2, 16, x[0], x[1])
	return c.n2(nUzp2, n, low, high)
}

func neonAbsolute(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	if in.DT.IsInt() && !in.DT.IsSigned() {
		return x[0]
	}
	return neonUnary(&nAbss)(c, in, x, dts)
}

func neonRounded(narrow op) primitive {
	return func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		if in.DT.IsInt() {
			return x[0]
		}
		o := narrow
		if in.DT == ir.Float64 {
			o |= wide
		}
		return c.n1(o, c.bytes(in.DT), x[0])
	}
}

func neonComplement(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	return c.wrapped(in.DT, c.n1(nMvn, c.bytes(in.DT), x[0]))
}

// neonShift uses shifts to the left, since arm64 has no others by a vector; the distance may be
// negative.
func neonShift(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	k, n, by, o := kinds[in.DT], c.bytes(in.DT), x[1], nUshl
	if in.Op == ir.ShrRaw {
		by = c.n1(nNegs[k], n, by)
		if in.DT.IsSigned() {
			o = nSshl
		}
	}
	if k == i64 {
		o |= wide
	}
	return c.wrapped(in.DT, c.n2(o, n, x[0], by))
}

func neonChoose(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	n := c.bytes(in.DT)
	return c.n3(nBsl, n, x[1], x[2], c.lanesAs(x[0], n))
}

func neonCompare(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	dt, a, b := dts[0], x[0], x[1]
	n := c.bytes(dt)
	if dt == ir.Bool {
		differ := c.n2(nEor, n, a, b)
		switch in.Op {
		case ir.Ne:
			return differ
		case ir.Eq:
			return c.n1(nMvn, n, differ)
		}
		c.fail("%v of masks", in.Op)
		return differ
	}
	o := in.Op
	if o == ir.Lt || o == ir.Le {
		a, b = b, a
		o = map[ir.Op]ir.Op{ir.Lt: ir.Gt, ir.Le: ir.Ge}[o]
	}
	var r op
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
	if sizeOf(dt) == 8 {
		r |= wide
	}
	m := c.asMask(c.n2(r, n, a, b))
	if o == ir.Ne {
		m = c.n1(nMvn, c.bytes(ir.Bool), m)
	}
	return m
}

// neonQuotient need not test divisors: arm64 gives 0 for a division by 0, and does not fault.
func neonQuotient(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	size, signed := sizeOf(in.DT), in.DT.IsSigned()
	return c.eachLane(in.DT, x, func(x []mem, d mem) {
		c.loadSize(size, signed, rax, x[0])
		c.loadSize(size, signed, rbx, x[1])
		c.divideA64(signed, r15, rax, rbx)
		if in.Op == ir.Mod {
			c.lessProduct(r15, r15, rbx, rax)
		}
		c.storeSize(size, d, r15)
	})
}

// neonChange converts between dtypes of which one has 64 bits or is a float.
func (c *code) neonChange(from, to ir.DType, v value) value {
	n := max(c.bytes(from), c.bytes(to))
	widened := func(signed bool, v value) value {
		if signed {
			return c.n1(nSxtl, n, v)
		}
		return c.n1(nUxtl, n, v)
	}
	signed := func(s, u op, dt ir.DType) op {
		if dt.IsSigned() {
			return s
		}
		return u
	}
	switch a, b := sizeOf(from), sizeOf(to); {
	case from.IsInt() && to.IsInt() && a == b:
		return v
	case from.IsInt() && to.IsInt() && a == 8:
		return c.halved(v)
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
		return c.eachLane(to, []value{v}, func(x []mem, d mem) {
			c.load(rax, x[0])
			c.toFloat32(from.IsSigned(), c.laneReg, rax)
			c.moveVec(c.laneReg, 4, d, false)
		})
	case a == 4 && b == 4:
		return c.n1(signed(nFcvtzs, nFcvtzu, to), n, v)
	case to.IsInt() && b == 8:
		if a == 4 {
			v = c.n1(nFcvtl, n, v)
		}
		return c.n1(signed(nFcvtzs, nFcvtzu, to)|wide, n, v)
	case from == ir.Float64:
		return c.halved(c.n1(signed(nFcvtzs, nFcvtzu, to)|wide, n, v))
	}
	c.fail("no conversion of %v to %v", from, to)
	return v
}

// neonExtremum is the instruction for an extremum of integers.
func neonExtremum(signed, smaller bool) *row {
	switch {
	case smaller && signed:
		return &nMins
	case smaller:
		return &nMinus
	case signed:
		return &nMaxs
	}
	return &nMaxus
}
