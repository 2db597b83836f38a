package amd64

import (
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

var (
	adds     = native.Row{vaddps, vaddpd, vpaddd, vpaddq}
	subs     = native.Row{vsubps, vsubpd, vpsubd, vpsubq}
	muls     = native.Row{vmulps, vmulpd, vpmulld, vpmullq}
	divs     = native.Row{vdivps, vdivpd}
	sqrts    = native.Row{vsqrtps, vsqrtpd}
	fmas     = native.Row{vfmadd231ps, vfmadd231pd}
	mins     = native.Row{vminps, vminpd, vpminsd, vpminsq}
	maxs     = native.Row{vmaxps, vmaxpd, vpmaxsd, vpmaxsq}
	minus    = native.Row{native.I32: vpminud, native.I64: vpminuq}
	maxus    = native.Row{native.I32: vpmaxud, native.I64: vpmaxuq}
	rounds   = native.Row{vroundps, vroundpd}
	scales   = native.Row{vrndscaleps, vrndscalepd}
	blends   = native.Row{vblendmps, vblendmpd, vblendmps, vblendmpd}
	blendvs  = native.Row{vblendvps, vblendvpd, vblendvps, vblendvpd}
	shls     = native.Row{native.I32: vpsllvd, native.I64: vpsllvq}
	shrs     = native.Row{native.I32: vpsrlvd, native.I64: vpsrlvq}
	sars     = native.Row{native.I32: vpsravd, native.I64: vpsravq}
	cmps     = native.Row{vcmpps, vcmppd}
	kcmps    = native.Row{kcmpps, kcmppd, vpcmpd, vpcmpq}
	kcmpus   = native.Row{native.I32: vpcmpud, native.I64: vpcmpuq}
	cmpeqs   = native.Row{native.I32: vpcmpeqd, native.I64: vpcmpeqq}
	cmpgts   = native.Row{native.I32: vpcmpgtd, native.I64: vpcmpgtq}
	logicAnd = native.Row{vpand, vpandq, vpand, vpandq}
	logicOr  = native.Row{vpor, vporq, vpor, vporq}
	logicXor = native.Row{vpxor, vpxorq, vpxor, vpxorq}
)

// bitwise returns the instruction for elements of a kind. Without EVEX all kinds use the same.
func (c *machine) bitwise(r *native.Row, k native.Kind) native.Op {
	if !c.evex {
		return r[native.I32]
	}
	return r[k]
}

// primitive makes the value of an instruction. x are the values of its operands, dts their dtypes.
type primitive func(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value

// primitives are those of amd64.
var primitives = [ir.NumOps]primitive{
	ir.Add:  direct(&adds),
	ir.Sub:  direct(&subs),
	ir.Mul:  multiply,
	ir.FDiv: direct(&divs),
	ir.Sqrt: func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		return c.Op2(sqrts[native.Kinds[in.DT]], c.Bytes(in.DT), c.Bytes(in.DT), x[0])
	},
	ir.FMA:    fused,
	ir.Neg:    negate,
	ir.Abs:    absolute,
	ir.Floor:  rounded(9),
	ir.Ceil:   rounded(10),
	ir.Trunc:  rounded(11),
	ir.Round:  rounded(8),
	ir.Quo:    quotient,
	ir.Mod:    quotient,
	ir.MulHi:  mulHigh,
	ir.And:    logic(&logicAnd, kandw),
	ir.Or:     logic(&logicOr, korw),
	ir.Xor:    logic(&logicXor, kxorw),
	ir.Not:    complement,
	ir.ShlRaw: shiftLeft,
	ir.ShrRaw: shiftRight,
	ir.Eq:     compare,
	ir.Ne:     compare,
	ir.Lt:     compare,
	ir.Le:     compare,
	ir.Gt:     compare,
	ir.Ge:     compare,
	ir.Where:  choose,

	ir.Maximum: extremumOf(false),
	ir.Minimum: extremumOf(true),
}

func direct(r *native.Row) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		return c.Wrapped(in.DT, c.Op3(r[native.Kinds[in.DT]], c.Bytes(in.DT), x[0], x[1]))
	}
}

func fused(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	n := c.Bytes(in.DT)
	return c.Item(native.Item{O: fmas[native.Kinds[in.DT]], Size: n, D: c.Vec(n), S: [3]native.Value{x[0], x[1], x[2]}, Imm: native.NoImm})
}

func multiply(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	if native.Kinds[in.DT] != native.I64 || c.evex {
		return direct(&muls)(c, in, x, dts)
	}
	// The product of the low halves, plus the sum of the cross products shifted by 32 bits.
	n := c.Bytes(in.DT)
	high := func(v native.Value) native.Value { return c.Op2i(vpsrlq, n, n, v, 32) }
	cross := c.Op3(vpaddq, n, c.Op3(vpmuludq, n, high(x[0]), x[1]), c.Op3(vpmuludq, n, high(x[1]), x[0]))
	return c.Op3(vpaddq, n, c.Op3(vpmuludq, n, x[0], x[1]), c.Op2i(vpsllq, n, n, cross, 32))
}

// mulHigh gives the high halves of 32-bit products. It multiplies even and odd lanes separately and
// joins the results.
func mulHigh(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	n := c.Bytes(in.DT)
	odd := func(v native.Value) native.Value {
		if x := c.Vals[v]; x.Home == native.InPool && x.Elem == 4 {
			return v // the same in all lanes
		}
		return c.Op2i(vpsrlq, n, n, v, 32)
	}
	even := c.Op2i(vpsrlq, n, n, c.Op3(vpmuludq, n, x[0], x[1]), 32)
	high := c.Op3(vpmuludq, n, odd(x[0]), odd(x[1]))
	high = c.Op3(c.bitwise(&logicAnd, native.I64), n, high, c.Splat(8, 0xffffffff<<32, n))
	return c.Op3(vpor, n, even, high)
}

func negate(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	k, n := native.Kinds[in.DT], c.Bytes(in.DT)
	if in.DT.IsFloat() {
		elem, bits := native.SignBit(k)
		return c.Op3(c.bitwise(&logicXor, k), n, x[0], c.Splat(elem, bits, n))
	}
	return c.Wrapped(in.DT, c.Op3(subs[k], n, c.Splat(native.SizeOf(in.DT), 0, n), x[0]))
}

func absolute(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	k, n := native.Kinds[in.DT], c.Bytes(in.DT)
	switch {
	case in.DT.IsFloat():
		elem, bits := native.SignBit(k)
		return c.Op3(c.bitwise(&logicAnd, k), n, x[0], c.Splat(elem, bits-1, n))
	case !in.DT.IsSigned():
		return x[0]
	case k == native.I32:
		return c.Op2(vpabsd, n, n, x[0])
	case c.evex:
		return c.Op2(vpabsq, n, n, x[0])
	}
	m := c.Op3(vpcmpgtq, n, c.Splat(8, 0, n), x[0])
	return c.Op3(vpsubq, n, c.Op3(vpxor, n, x[0], m), m)
}

func rounded(mode int16) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		if in.DT.IsInt() {
			return x[0]
		}
		r := &rounds
		if c.evex {
			r = &scales
		}
		return c.Op2i(r[native.Kinds[in.DT]], c.Bytes(in.DT), c.Bytes(in.DT), x[0], mode)
	}
}

func logic(r *native.Row, k native.Op) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		if in.DT == ir.Bool && c.evex {
			return c.toMask(k, c.Lanes, x[0], x[1], native.NoImm)
		}
		return c.Op3(c.bitwise(r, native.Kinds[in.DT]), c.Bytes(in.DT), x[0], x[1])
	}
}

func complement(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	if in.DT == ir.Bool {
		return c.notMask(x[0])
	}
	n := c.Bytes(in.DT)
	return c.Wrapped(in.DT, c.Op3(c.bitwise(&logicXor, native.Kinds[in.DT]), n, x[0], c.Splat(native.SizeOf(in.DT), ^uint64(0), n)))
}

func (c *machine) notMask(m native.Value) native.Value {
	if c.evex {
		return c.toMask(knotw, c.Lanes, 0, m, native.NoImm)
	}
	return c.Op3(vpxor, c.Bytes(ir.Bool), m, c.AllLanes(true))
}

func shiftLeft(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	return direct(&shls)(c, in, x, dts)
}

func shiftRight(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	k, n := native.Kinds[in.DT], c.Bytes(in.DT)
	switch {
	case !in.DT.IsSigned():
		return c.Op3(shrs[k], n, x[0], x[1])
	case k == native.I32 || c.evex:
		return c.Op3(sars[k], n, x[0], x[1])
	}
	// A logical shift moves the sign bit to m. (x ^ m) - m then extends the sign.
	m := c.Op3(vpsrlvq, n, c.Splat(8, 1<<63, n), x[1])
	return c.Op3(vpsubq, n, c.Op3(vpxor, n, c.Op3(vpsrlvq, n, x[0], x[1]), m), m)
}

// choose gives x[1] where the mask x[0] is set, else x[2].
func choose(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	if in.DT == ir.Bool {
		if c.evex {
			yes := c.toMask(kandw, c.Lanes, x[0], x[1], native.NoImm)
			return c.toMask(korw, c.Lanes, yes, c.toMask(kandnw, c.Lanes, x[0], x[2], native.NoImm), native.NoImm)
		}
		n := c.Bytes(ir.Bool)
		return c.Item(native.Item{O: blendvs[native.I32], Size: n, D: c.Vec(n), S: [3]native.Value{x[2], x[1], x[0]}, Imm: native.NoImm})
	}
	return c.blend(native.Kinds[in.DT], c.Bytes(in.DT), x[0], x[1], x[2])
}

// blend is x where the mask m is set, else y.
func (c *machine) blend(k native.Kind, n int, m, x, y native.Value) native.Value {
	if c.evex {
		return c.Item(native.Item{O: blends[k], Size: n, D: c.Vec(n), S: [3]native.Value{y, x}, K: m, Imm: native.NoImm})
	}
	return c.Item(native.Item{O: blendvs[k], Size: n, D: c.Vec(n), S: [3]native.Value{y, x, c.LanesAs(m, n)}, Imm: native.NoImm})
}

func (c *machine) SignExtended(n int, v native.Value) native.Value { return c.Op2(vpmovsxdq, n, n, v) }

func (c *machine) Halved(x native.Value) native.Value {
	if c.evex {
		n := c.Vals[x].Size
		return c.Item(native.Item{O: vpmovqd, Size: n, D: c.Vec(n / 2), S: [3]native.Value{x}, Imm: native.NoImm})
	}
	high := c.Item(native.Item{O: vextracti128, Size: 32, D: c.Vec(16), S: [3]native.Value{x}, Imm: 1})
	return c.Op3i(vshufps, 16, x, high, 0x88)
}

// predicates are the numbers of float comparisons in VEX and EVEX instructions.
var predicates = [ir.NumOps]int16{ir.Eq: 0, ir.Ne: 4, ir.Lt: 0x11, ir.Le: 0x12, ir.Gt: 0x1e, ir.Ge: 0x1d}

var intPredicates = [ir.NumOps]int16{ir.Eq: 0, ir.Ne: 4, ir.Lt: 1, ir.Le: 2, ir.Gt: 6, ir.Ge: 5}

func compare(c *machine, in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	dt := dts[0]
	k, n := native.Kinds[dt], c.Bytes(dt)
	switch {
	case dt == ir.Bool:
		return c.compareMasks(in.Op, x)
	case c.evex && dt == ir.Float32 || c.evex && dt == ir.Float64:
		return c.toMask(kcmps[k], n, x[0], x[1], predicates[in.Op])
	case c.evex && dt.IsSigned():
		return c.toMask(kcmps[k], n, x[0], x[1], intPredicates[in.Op])
	case c.evex:
		return c.toMask(kcmpus[k], n, x[0], x[1], intPredicates[in.Op])
	case dt == ir.Float32 || dt == ir.Float64:
		return c.AsMask(c.Op3i(cmps[k], n, x[0], x[1], predicates[in.Op]))
	}
	return c.compareInts(in.Op, dt, x[0], x[1])
}

// compareInts is for AVX2, which has only "equal" and "greater", both for signed numbers.
func (c *machine) compareInts(o ir.Op, dt ir.DType, x, y native.Value) native.Value {
	k, n := native.Kinds[dt], c.Bytes(dt)
	if o == ir.Eq || o == ir.Ne {
		m := c.AsMask(c.Op3(cmpeqs[k], n, x, y))
		if o == ir.Ne {
			m = c.notMask(m)
		}
		return m
	}
	if !dt.IsSigned() && dt.Held() == dt { // small unsigned numbers are held in 32 bits, where they are also valid signed numbers
		elem, bits := native.SignBit(k)
		flip := c.Splat(elem, bits, n)
		x, y = c.Op3(vpxor, n, x, flip), c.Op3(vpxor, n, y, flip)
	}
	if o == ir.Lt || o == ir.Ge { // x >= y is not y > x
		x, y = y, x
	}
	m := c.AsMask(c.Op3(cmpgts[k], n, x, y))
	if o == ir.Le || o == ir.Ge {
		m = c.notMask(m)
	}
	return m
}

func (c *machine) compareMasks(o ir.Op, x []native.Value) native.Value {
	differ := native.Value(0)
	if c.evex {
		differ = c.toMask(kxorw, c.Lanes, x[0], x[1], native.NoImm)
	} else {
		differ = c.Op3(vpxor, c.Bytes(ir.Bool), x[0], x[1])
	}
	switch o {
	case ir.Ne:
		return differ
	case ir.Eq:
		return c.notMask(differ)
	}
	c.Fail("%v cannot take masks", o)
	return differ
}

// ChoiceOp is the instruction that equals a Where. min(a, b) equals a < b ? a : b in every bit: it
// gives b if either is NaN and if both are zeros. This does not hold if denormals are flushed: a Where
// copies their bits, but the instruction gives zeros for them.
func (c *machine) ChoiceOp(dt ir.DType, smaller bool) native.Op {
	switch signed := dt.IsSigned(); {
	case dt.IsFloat() && c.Denormals == ir.FlushDenormals, dt.IsInt() && native.SizeOf(dt) == 8 && !c.evex:
		return native.OpNone
	case smaller && signed:
		return mins[native.Kinds[dt]]
	case smaller:
		return minus[native.Kinds[dt]]
	case signed:
		return maxs[native.Kinds[dt]]
	}
	return maxus[native.Kinds[dt]]
}

func (c *machine) Primitive(in ir.Instr, x []native.Value, dts []ir.DType) native.Value {
	return primitives[in.Op](c, in, x, dts)
}

func (c *machine) BitAnd(n int, x, y native.Value) native.Value { return c.Op3(vpand, n, x, y) }

func (c *machine) Extended(n int, x native.Value, by int16) native.Value {
	return c.Op2i(vpsrad, n, n, c.Op2i(vpslld, n, n, x, by), by)
}

func (c *machine) TestMask(n int, v native.Value) native.Value {
	return c.toMask(vptestmd, n, v, v, native.NoImm)
}

func (c *machine) Choice(m native.Value, n, elem int, bits uint64) native.Value {
	set := c.Splat(elem, bits, n)
	if !c.evex {
		return c.BitAnd(n, c.LanesAs(m, n), set)
	}
	o := vbroadcastss
	if elem == 8 {
		o = vbroadcastsd
	}
	return c.Item(native.Item{O: o, Size: n, D: c.Vec(n), Mem: c.Vals[set].Mem, InMem: true, K: m, Zero: true, Imm: native.NoImm})
}

// ConstantOf: with EVEX an instruction broadcasts an element, but none has this form for two elements
// of eight bytes.
func (c *machine) ConstantOf(elem, n int) (count int, one bool) {
	switch {
	case !c.evex:
		return c.ISA.Bytes / elem, false
	case n == 16 && elem == 8:
		return 2, false
	}
	return 1, elem == 4 || n > 16
}

func (c *machine) LoadItem(it native.Item) native.Value {
	it.O = vmovups
	return c.Item(it)
}

func (c *machine) StoreItem(it native.Item) {
	it.O = vmovupsTo
	c.Item(it)
}

// quotient divides integers, or gives the remainder. A kernel makes sure that no divisor is 0, nor
// -1 if the quotient would overflow. But it may do so in an earlier phase, and lanes beyond a row's
// end hold any value. The processor faults on such divisions, so the code never divides by 0 or -1.
func quotient(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
	wide, signed := native.SizeOf(in.DT) == 8, in.DT.IsSigned()
	from := native.RAX
	if in.Op == ir.Mod {
		from = native.RDX
	}
	size := native.SizeOf(in.DT)
	v := c.EachLane(in.DT, x, func(x []native.Mem, d native.Mem) {
		minus, done := c.NewLabel(), c.NewLabel()
		c.Copy(native.R15, native.RDX)
		c.LoadSize(size, signed, native.RAX, x[0])
		c.LoadSize(size, signed, native.RBX, x[1])
		c.Clear(native.RDX)
		c.OpImm(native.Cmp, native.OfGPR(native.RBX), 0)
		c.JumpIf(native.Equal, done)
		if signed {
			c.OpImm(native.Cmp, native.OfGPR(native.RBX), -1)
			c.JumpIf(native.Equal, minus)
		}
		c.divide(signed, wide, x[1])
		if signed {
			over := c.NewLabel()
			c.Jump(over)
			c.Place(minus)
			c.Negate(native.RAX)
			c.Place(over)
		}
		c.Place(done)
		c.StoreSize(size, d, from)
		c.Copy(native.RDX, native.R15)
	})
	return v
}
