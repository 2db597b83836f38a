package native

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// kind is the class of dtypes that use the same instructions. Elements of 8 and 16 bits are held in
// 32 bits, 16-bit floats as their bits. A Bool is a mask.
type kind uint8

const (
	f32 kind = iota
	f64
	i32
	i64
	numKinds
)

var kinds = [ir.NumDTypes]kind{
	ir.Uint8: i32, ir.Int8: i32, ir.Int16: i32, ir.Uint16: i32, ir.Float16: i32, ir.BFloat16: i32,
	ir.Int32: i32, ir.Uint32: i32, ir.Int64: i64, ir.Uint64: i64, ir.Float32: f32, ir.Float64: f64,
}

// sizeOf returns the bytes of a value's lane. If masks are vectors, their lanes have the width of
// the widest value instead.
func sizeOf(dt ir.DType) int {
	if k := kinds[dt]; dt != ir.Bool && (k == f64 || k == i64) {
		return 8
	}
	return 4
}

// bytes returns the size of a vector of a dtype.
func (c *code) bytes(dt ir.DType) int {
	if dt == ir.Bool && !c.isa.EVEX {
		return c.lanes * c.width
	}
	return c.lanes * sizeOf(dt)
}

// row has an instruction for each kind.
type row [numKinds]op

var (
	adds     = row{vaddps, vaddpd, vpaddd, vpaddq}
	subs     = row{vsubps, vsubpd, vpsubd, vpsubq}
	muls     = row{vmulps, vmulpd, vpmulld, vpmullq}
	divs     = row{vdivps, vdivpd}
	sqrts    = row{vsqrtps, vsqrtpd}
	fmas     = row{vfmadd231ps, vfmadd231pd}
	mins     = row{vminps, vminpd, vpminsd, vpminsq}
	maxs     = row{vmaxps, vmaxpd, vpmaxsd, vpmaxsq}
	minus    = row{i32: vpminud, i64: vpminuq}
	maxus    = row{i32: vpmaxud, i64: vpmaxuq}
	rounds   = row{vroundps, vroundpd}
	scales   = row{vrndscaleps, vrndscalepd}
	blends   = row{vblendmps, vblendmpd, vblendmps, vblendmpd}
	blendvs  = row{vblendvps, vblendvpd, vblendvps, vblendvpd}
	shls     = row{i32: vpsllvd, i64: vpsllvq}
	shrs     = row{i32: vpsrlvd, i64: vpsrlvq}
	sars     = row{i32: vpsravd, i64: vpsravq}
	shlsBy   = row{f32: vpslld, f64: vpsllq, i32: vpslld, i64: vpsllq}
	shrsBy   = row{f32: vpsrld, f64: vpsrlq, i32: vpsrld, i64: vpsrlq}
	cmps     = row{vcmpps, vcmppd}
	kcmps    = row{kcmpps, kcmppd, vpcmpd, vpcmpq}
	kcmpus   = row{i32: vpcmpud, i64: vpcmpuq}
	cmpeqs   = row{i32: vpcmpeqd, i64: vpcmpeqq}
	cmpgts   = row{i32: vpcmpgtd, i64: vpcmpgtq}
	logicAnd = row{vpand, vpandq, vpand, vpandq}
	logicOr  = row{vpor, vporq, vpor, vporq}
	logicXor = row{vpxor, vpxorq, vpxor, vpxorq}
	logicNot = row{vpandn, vpandnq, vpandn, vpandnq}
)

// bitwise returns the instruction for elements of a kind. Without EVEX all kinds use the same.
func (c *code) bitwise(r *row, k kind) op {
	if !c.isa.EVEX {
		return r[i32]
	}
	return r[k]
}

// primitive makes the value of an instruction. x are the values of its operands, dts their dtypes.
type primitive func(c *code, in ir.Instr, x []value, dts []ir.DType) value

// primitives are those of amd64.
var primitives = [ir.NumOps]primitive{
	ir.Add:  direct(&adds),
	ir.Sub:  direct(&subs),
	ir.Mul:  multiply,
	ir.FDiv: direct(&divs),
	ir.Sqrt: func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		return c.op2(sqrts[kinds[in.DT]], c.bytes(in.DT), c.bytes(in.DT), x[0])
	},
	ir.FMA:     fused,
	ir.Neg:     negate,
	ir.Abs:     absolute,
	ir.Floor:   rounded(9),
	ir.Ceil:    rounded(10),
	ir.Trunc:   rounded(11),
	ir.Round:   rounded(8),
	ir.Quo:     quotient,
	ir.Mod:     quotient,
	ir.MulHi:   mulHigh,
	ir.And:     logic(&logicAnd, kandw),
	ir.Or:      logic(&logicOr, korw),
	ir.Xor:     logic(&logicXor, kxorw),
	ir.Not:     complement,
	ir.ShlRaw:  shiftLeft,
	ir.ShrRaw:  shiftRight,
	ir.Eq:      compare,
	ir.Ne:      compare,
	ir.Lt:      compare,
	ir.Le:      compare,
	ir.Gt:      compare,
	ir.Ge:      compare,
	ir.Where:   choose,
	ir.Convert: convert,
	ir.Bitcast: bitcast,
	ir.Lookup:  lookup,

	ir.Maximum: extremumOf(false),
	ir.Minimum: extremumOf(true),

	ir.Rare: rare,
}

// spell makes the value of a primitive that does not access memory.
func (c *code) spell(in ir.Instr, x []value, dts []ir.DType) value {
	f := c.isa.primitives[in.Op]
	if f == nil {
		c.fail("%v is not a primitive", in.Op)
		return 0
	}
	return f(c, in, x, dts)
}

// constantOf returns the value of a Const.
func (c *code) constantOf(in ir.Instr) value {
	if in.DT == ir.Bool {
		return c.allLanes(in.Imm != 0)
	}
	bits := in.Imm
	switch in.DT {
	case ir.Int8:
		bits = uint64(uint32(int8(bits)))
	case ir.Int16:
		bits = uint64(uint32(int16(bits)))
	}
	return c.splat(sizeOf(in.DT), bits, c.bytes(in.DT))
}

// allLanes returns a mask of all lanes, or of none.
func (c *code) allLanes(set bool) value {
	bits := uint64(0)
	if set {
		bits = ^uint64(0)
	}
	if !c.isa.EVEX {
		return c.splat(c.width, bits, c.lanes*c.width)
	}
	key := constant{bits: bits, size: 1, count: uint8(c.lanes)}
	if v, ok := c.consts[key]; ok {
		return v
	}
	v := c.newValue(info{mask: true, size: c.lanes, home: anywhere, elem: uint8(bits & 1)})
	c.consts[key] = v
	return v
}

func direct(r *row) primitive {
	return func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		return c.wrapped(in.DT, c.op3(r[kinds[in.DT]], c.bytes(in.DT), x[0], x[1]))
	}
}

// wrapped reduces a Uint8 result of 32-bit arithmetic to eight bits.
func (c *code) wrapped(dt ir.DType, v value) value {
	if dt != ir.Uint8 {
		return v
	}
	n := c.bytes(dt)
	return c.bitAnd(n, v, c.splat(4, 0xff, n))
}

func fused(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	n := c.bytes(in.DT)
	return c.item(item{o: fmas[kinds[in.DT]], size: n, d: c.vec(n), s: [3]value{x[0], x[1], x[2]}, imm: noImm})
}

func multiply(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	if kinds[in.DT] != i64 || c.isa.EVEX {
		return direct(&muls)(c, in, x, dts)
	}
	// The product of the low halves, plus the sum of the cross products shifted by 32 bits.
	n := c.bytes(in.DT)
	high := func(v value) value { return c.op2i(vpsrlq, n, n, v, 32) }
	cross := c.op3(vpaddq, n, c.op3(vpmuludq, n, high(x[0]), x[1]), c.op3(vpmuludq, n, high(x[1]), x[0]))
	return c.op3(vpaddq, n, c.op3(vpmuludq, n, x[0], x[1]), c.op2i(vpsllq, n, n, cross, 32))
}

// mulHigh gives the high halves of 32-bit products. It multiplies even and odd lanes separately and
// joins the results.
func mulHigh(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	n := c.bytes(in.DT)
	odd := func(v value) value {
		if x := c.vals[v]; x.home == inPool && x.elem == 4 {
			return v // the same in all lanes
		}
		return c.op2i(vpsrlq, n, n, v, 32)
	}
	even := c.op2i(vpsrlq, n, n, c.op3(vpmuludq, n, x[0], x[1]), 32)
	high := c.op3(vpmuludq, n, odd(x[0]), odd(x[1]))
	high = c.op3(c.bitwise(&logicAnd, i64), n, high, c.splat(8, 0xffffffff<<32, n))
	return c.op3(vpor, n, even, high)
}

func signBit(k kind) (elem int, bits uint64) {
	if k == f64 || k == i64 {
		return 8, 1 << 63
	}
	return 4, 1 << 31
}

func negate(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	k, n := kinds[in.DT], c.bytes(in.DT)
	if in.DT.IsFloat() {
		elem, bits := signBit(k)
		return c.op3(c.bitwise(&logicXor, k), n, x[0], c.splat(elem, bits, n))
	}
	return c.wrapped(in.DT, c.op3(subs[k], n, c.splat(sizeOf(in.DT), 0, n), x[0]))
}

func absolute(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	k, n := kinds[in.DT], c.bytes(in.DT)
	switch {
	case in.DT.IsFloat():
		elem, bits := signBit(k)
		return c.op3(c.bitwise(&logicAnd, k), n, x[0], c.splat(elem, bits-1, n))
	case !in.DT.IsSigned():
		return x[0]
	case k == i32:
		return c.op2(vpabsd, n, n, x[0])
	case c.isa.EVEX:
		return c.op2(vpabsq, n, n, x[0])
	}
	m := c.op3(vpcmpgtq, n, c.splat(8, 0, n), x[0])
	return c.op3(vpsubq, n, c.op3(vpxor, n, x[0], m), m)
}

func rounded(mode int16) primitive {
	return func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		if in.DT.IsInt() {
			return x[0]
		}
		r := &rounds
		if c.isa.EVEX {
			r = &scales
		}
		return c.op2i(r[kinds[in.DT]], c.bytes(in.DT), c.bytes(in.DT), x[0], mode)
	}
}

func logic(r *row, k op) primitive {
	return func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		if in.DT == ir.Bool && c.isa.EVEX {
			return c.toMask(k, c.lanes, x[0], x[1], noImm)
		}
		return c.op3(c.bitwise(r, kinds[in.DT]), c.bytes(in.DT), x[0], x[1])
	}
}

func complement(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	if in.DT == ir.Bool {
		return c.notMask(x[0])
	}
	n := c.bytes(in.DT)
	return c.wrapped(in.DT, c.op3(c.bitwise(&logicXor, kinds[in.DT]), n, x[0], c.splat(sizeOf(in.DT), ^uint64(0), n)))
}

func (c *code) notMask(m value) value {
	if c.isa.EVEX {
		return c.toMask(knotw, c.lanes, 0, m, noImm)
	}
	return c.op3(vpxor, c.bytes(ir.Bool), m, c.allLanes(true))
}

func shiftLeft(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	return direct(&shls)(c, in, x, dts)
}

func shiftRight(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	k, n := kinds[in.DT], c.bytes(in.DT)
	switch {
	case !in.DT.IsSigned():
		return c.op3(shrs[k], n, x[0], x[1])
	case k == i32 || c.isa.EVEX:
		return c.op3(sars[k], n, x[0], x[1])
	}
	// A logical shift moves the sign bit to m. (x ^ m) - m then extends the sign.
	m := c.op3(vpsrlvq, n, c.splat(8, 1<<63, n), x[1])
	return c.op3(vpsubq, n, c.op3(vpxor, n, c.op3(vpsrlvq, n, x[0], x[1]), m), m)
}

// choose gives x[1] where the mask x[0] is set, else x[2].
func choose(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	if in.DT == ir.Bool {
		if c.isa.EVEX {
			yes := c.toMask(kandw, c.lanes, x[0], x[1], noImm)
			return c.toMask(korw, c.lanes, yes, c.toMask(kandnw, c.lanes, x[0], x[2], noImm), noImm)
		}
		n := c.bytes(ir.Bool)
		return c.item(item{o: blendvs[i32], size: n, d: c.vec(n), s: [3]value{x[2], x[1], x[0]}, imm: noImm})
	}
	return c.blend(kinds[in.DT], c.bytes(in.DT), x[0], x[1], x[2])
}

// blend is x where the mask m is set, else y.
func (c *code) blend(k kind, n int, m, x, y value) value {
	if c.isa.EVEX {
		return c.item(item{o: blends[k], size: n, d: c.vec(n), s: [3]value{y, x}, k: m, imm: noImm})
	}
	return c.item(item{o: blendvs[k], size: n, d: c.vec(n), s: [3]value{y, x, c.lanesAs(m, n)}, imm: noImm})
}

// lanesAs converts a vector mask to the lane width of a vector of n bytes.
func (c *code) lanesAs(m value, n int) value {
	have := c.vals[m].size
	switch {
	case have == n:
		return m
	case have < n && c.isa.A64:
		return c.n1(nSxtl, n, m)
	case have < n:
		return c.op2(vpmovsxdq, n, n, m)
	}
	return c.halved(m)
}

// halved has the low 32 bits of each 64-bit lane.
func (c *code) halved(x value) value {
	if c.isa.A64 {
		return c.op2(nXtn, 16, 8, x)
	}
	if c.isa.EVEX {
		n := c.vals[x].size
		return c.item(item{o: vpmovqd, size: n, d: c.vec(n / 2), s: [3]value{x}, imm: noImm})
	}
	high := c.item(item{o: vextracti128, size: 32, d: c.vec(16), s: [3]value{x}, imm: 1})
	return c.op3i(vshufps, 16, x, high, 0x88)
}

// predicates are the numbers of float comparisons in VEX and EVEX instructions.
var predicates = [ir.NumOps]int16{ir.Eq: 0, ir.Ne: 4, ir.Lt: 0x11, ir.Le: 0x12, ir.Gt: 0x1e, ir.Ge: 0x1d}

var intPredicates = [ir.NumOps]int16{ir.Eq: 0, ir.Ne: 4, ir.Lt: 1, ir.Le: 2, ir.Gt: 6, ir.Ge: 5}

func compare(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	dt := dts[0]
	k, n := kinds[dt], c.bytes(dt)
	switch {
	case dt == ir.Bool:
		return c.compareMasks(in.Op, x)
	case c.isa.EVEX && dt == ir.Float32 || c.isa.EVEX && dt == ir.Float64:
		return c.toMask(kcmps[k], n, x[0], x[1], predicates[in.Op])
	case c.isa.EVEX && dt.IsSigned():
		return c.toMask(kcmps[k], n, x[0], x[1], intPredicates[in.Op])
	case c.isa.EVEX:
		return c.toMask(kcmpus[k], n, x[0], x[1], intPredicates[in.Op])
	case dt == ir.Float32 || dt == ir.Float64:
		return c.asMask(c.op3i(cmps[k], n, x[0], x[1], predicates[in.Op]))
	}
	return c.compareInts(in.Op, dt, x[0], x[1])
}

// asMask converts the result of a comparison to the lane width of masks.
func (c *code) asMask(m value) value { return c.lanesAs(m, c.bytes(ir.Bool)) }

// compareInts is for AVX2, which has only "equal" and "greater", both for signed numbers.
func (c *code) compareInts(o ir.Op, dt ir.DType, x, y value) value {
	k, n := kinds[dt], c.bytes(dt)
	if o == ir.Eq || o == ir.Ne {
		m := c.asMask(c.op3(cmpeqs[k], n, x, y))
		if o == ir.Ne {
			m = c.notMask(m)
		}
		return m
	}
	if !dt.IsSigned() && dt != ir.Uint8 && dt != ir.Uint16 { // small unsigned numbers are held in 32 bits, where they are also valid signed numbers
		elem, bits := signBit(k)
		flip := c.splat(elem, bits, n)
		x, y = c.op3(vpxor, n, x, flip), c.op3(vpxor, n, y, flip)
	}
	if o == ir.Lt || o == ir.Ge { // x >= y is not y > x
		x, y = y, x
	}
	m := c.asMask(c.op3(cmpgts[k], n, x, y))
	if o == ir.Le || o == ir.Ge {
		m = c.notMask(m)
	}
	return m
}

func (c *code) compareMasks(o ir.Op, x []value) value {
	differ := value(0)
	if c.isa.EVEX {
		differ = c.toMask(kxorw, c.lanes, x[0], x[1], noImm)
	} else {
		differ = c.op3(vpxor, c.bytes(ir.Bool), x[0], x[1])
	}
	switch o {
	case ir.Ne:
		return differ
	case ir.Eq:
		return c.notMask(differ)
	}
	c.fail("%v of masks", o)
	return differ
}

// extremum recognises a Where that one instruction can do. On amd64, min(a, b) equals a < b ? a : b
// in every bit: it gives b if either is NaN and if both are zeros. This does not hold if denormals
// are flushed: a Where copies their bits, but the instruction gives zeros for them.
func (c *code) extremum(in ir.Instr) (r *row, a, b ir.Ref) {
	body := c.k.Body
	switch {
	case in.Op != ir.Where || in.DT == ir.Bool || in.DT.Storage():
		return nil, 0, 0
	case in.DT.IsFloat() && c.k.Denormals == ir.FlushDenormals:
		return nil, 0, 0
	case in.DT.IsInt() && sizeOf(in.DT) == 8 && !c.isa.EVEX:
		return nil, 0, 0
	case in.DT.IsFloat() && c.isa.A64: // arm64's minimum is that of IEEE
		return nil, 0, 0
	}
	m := body[in.Args[0]]
	x, y := in.Args[1], in.Args[2]
	if m.Op != ir.Lt && m.Op != ir.Gt {
		return nil, 0, 0
	}
	smaller := m.Op == ir.Lt
	switch {
	case m.Args[0] == x && m.Args[1] == y:
	case m.Args[0] == y && m.Args[1] == x:
		smaller = !smaller
	default:
		return nil, 0, 0
	}
	if c.isa.A64 {
		return neonExtremum(in.DT.IsSigned(), smaller), x, y
	}
	switch signed := in.DT.IsSigned(); {
	case smaller && signed:
		return &mins, x, y
	case smaller:
		return &minus, x, y
	case signed:
		return &maxs, x, y
	}
	return &maxus, x, y
}

func describe(i int, in ir.Instr) string {
	text := codegen.FormatBody([]ir.Instr{in})
	return fmt.Sprintf("%%%d%s", i, text[2:])
}
