package native

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// Conversions by value. Conversions that one instruction can do are in tables. The others are
// composed of several instructions and are exact: every conversion rounds once.

// pair is a conversion between dtypes as lanes hold them.
type pair struct{ from, to ir.DType }

// conversions are those of both amd64 targets, conversions512 those of AVX-512 only.
var conversions = map[pair]op{
	{ir.Int32, ir.Float32}: vcvtdq2ps, {ir.Float32, ir.Int32}: vcvttps2dq,
	{ir.Int32, ir.Float64}: vcvtdq2pd, {ir.Float64, ir.Int32}: vcvttpd2dq,
	{ir.Float32, ir.Float64}: vcvtps2pd, {ir.Float64, ir.Float32}: vcvtpd2ps,
}

var conversions512 = map[pair]op{
	{ir.Uint32, ir.Float32}: vcvtudq2ps, {ir.Float32, ir.Uint32}: vcvttps2udq,
	{ir.Uint32, ir.Float64}: vcvtudq2pd, {ir.Float64, ir.Uint32}: vcvttpd2udq,
	{ir.Int64, ir.Float64}: vcvtqq2pd, {ir.Uint64, ir.Float64}: vcvtuqq2pd,
	{ir.Int64, ir.Float32}: vcvtqq2ps, {ir.Uint64, ir.Float32}: vcvtuqq2ps,
	{ir.Float32, ir.Int64}: vcvttps2qq, {ir.Float32, ir.Uint64}: vcvttps2uqq,
	{ir.Float64, ir.Int64}: vcvttpd2qq, {ir.Float64, ir.Uint64}: vcvttpd2uqq,
}

// lane is the dtype as which a value is held in a lane.
func lane(dt ir.DType) ir.DType {
	switch dt {
	case ir.Int8, ir.Int16:
		return ir.Int32
	case ir.Uint8, ir.Uint16, ir.Float16, ir.BFloat16:
		return ir.Uint32
	}
	return dt
}

func convert(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	from, to, v := dts[0], in.DT, x[0]
	switch {
	case from == to:
		return v
	case from == ir.Bool:
		return c.masked(to, v)
	case to == ir.Bool:
		return c.spell(ir.Instr{Op: ir.Ne, DT: ir.Bool}, []value{v, c.splat(sizeOf(from), 0, c.bytes(from))}, dts)
	case from.IsFloat() && lane(from) == from && to.IsInt() && to.Size() < 4: // through 32 bits
		return c.fit(to, ir.Int32, c.change(from, ir.Int32, v))
	case sizeOf(from) == 8 && to.IsInt() && to.Size() < 4:
		return c.fit(to, ir.Int32, c.halved(v))
	}
	if a, b := lane(from), lane(to); sizeOf(from) == 8 || sizeOf(to) == 8 || a.IsFloat() || b.IsFloat() {
		if from.Size() < 4 {
			a = ir.Int32 // all their values fit both
			if to.IsInt() && sizeOf(to) == 8 && !from.IsSigned() {
				a = ir.Uint32
			}
		}
		return c.change(a, b, v)
	}
	return c.fit(to, from, v)
}

// masked is 1 where a mask is set, else 0.
func (c *code) masked(to ir.DType, m value) value {
	n, elem, one := c.bytes(to), sizeOf(to), uint64(1)
	switch to {
	case ir.Float32:
		one = uint64(math.Float32bits(1))
	case ir.Float64:
		one = math.Float64bits(1)
	}
	return c.choice(m, n, elem, one)
}

// choice has bits in the lanes of elem bytes where a mask is set, and 0 elsewhere.
func (c *code) choice(m value, n, elem int, bits uint64) value {
	k := i32
	if elem == 8 {
		k = i64
	}
	set := c.splat(elem, bits, n)
	if !c.isa.EVEX {
		return c.bitAnd(n, c.lanesAs(m, n), set)
	}
	o := vbroadcastss
	if k == i64 {
		o = vbroadcastsd
	}
	return c.item(item{o: o, size: n, d: c.vec(n), mem: c.vals[set].mem, inMem: true, k: m, zero: true, imm: noImm})
}

// fit reduces a value held in 32 bits to the low bits of a smaller type; for a type of the same
// width it does nothing.
func (c *code) fit(to, from ir.DType, v value) value {
	bits := to.Bits()
	n := c.bytes(to)
	switch {
	case bits >= 32, bits == from.Bits() && (lane(to) == ir.Int32) == (lane(from) == ir.Int32), bits > from.Bits() && !(lane(from) == ir.Int32):
		return v
	case lane(to) == ir.Int32:
		return c.extended(n, v, int16(32-bits))
	}
	return c.bitAnd(n, v, c.splat(4, 1<<bits-1, n))
}

// change converts between dtypes of which one has 64 bits or is a float.
func (c *code) change(from, to ir.DType, v value) value {
	if c.isa.A64 {
		return c.neonChange(from, to, v)
	}
	n := max(c.bytes(from), c.bytes(to))
	o := conversions[pair{from, to}]
	if o == opNone && c.isa.EVEX {
		o = conversions512[pair{from, to}]
	}
	if o != opNone {
		return c.op2(o, n, c.bytes(to), v)
	}
	switch {
	case from.IsInt() && to.IsInt() && sizeOf(from) == sizeOf(to):
		return v
	case from.IsInt() && to.IsInt() && sizeOf(from) == 8:
		return c.halved(v)
	case from.IsInt() && to.IsInt() && from.IsSigned():
		return c.op2(vpmovsxdq, n, n, v)
	case from.IsInt() && to.IsInt():
		return c.op2(vpmovzxdq, n, n, v)
	}
	return c.changeAVX2(from, to, v)
}

// Floats whose last bit has the value 1, and 2^32.
const (
	two52 = 0x43300000_00000000 // 2^52
	two84 = 0x45300000_00000000 // 2^84
)

// changeAVX2 makes conversions for which AVX2 has no instruction.
func (c *code) changeAVX2(from, to ir.DType, v value) value {
	n := max(c.bytes(from), c.bytes(to))
	double := func(x float64) value { return c.splat(8, math.Float64bits(x), n) }
	switch (pair{from, to}) {
	case pair{ir.Uint32, ir.Float32}:
		// The halves are exact, and so is the upper half's multiple: only the sum rounds.
		high := c.op2(vcvtdq2ps, n, n, c.op2i(vpsrld, n, n, v, 16))
		low := c.op2(vcvtdq2ps, n, n, c.op3(vpand, n, v, c.splat(4, 0xffff, n)))
		return c.op3(vaddps, n, c.op3(vmulps, n, high, c.splat(4, uint64(math.Float32bits(65536)), n)), low)
	case pair{ir.Float32, ir.Uint32}:
		half := c.splat(4, uint64(math.Float32bits(1<<31)), n)
		above := c.op3i(vcmpps, n, half, v, predicates[ir.Le])
		less := c.op3(vsubps, n, v, c.op3(vpand, n, above, half))
		return c.op3(vpxor, n, c.op2(vcvttps2dq, n, n, less), c.op3(vpand, n, above, c.splat(4, 1<<31, n)))
	case pair{ir.Uint32, ir.Float64}:
		bits := c.op3(vpor, n, c.op2(vpmovzxdq, n, n, v), c.splat(8, two52, n))
		return c.op3(vsubpd, n, bits, c.splat(8, two52, n))
	case pair{ir.Float64, ir.Uint32}:
		whole := c.op2i(vroundpd, n, n, v, 11)
		return c.halved(c.op3(vaddpd, n, whole, c.splat(8, two52, n)))
	case pair{ir.Int64, ir.Float64}, pair{ir.Uint64, ir.Float64}:
		// The halves become floats of their own; subtracting the bias from the upper one is exact.
		high, bias := c.op2i(vpsrlq, n, n, v, 32), math.Float64frombits(two84)+0x1p52
		if from == ir.Int64 {
			high, bias = c.op3(vpxor, n, high, c.splat(8, 1<<31, n)), bias+0x1p63
		}
		high = c.op3(vsubpd, n, c.op3(vpor, n, high, c.splat(8, two84, n)), double(bias))
		low := c.op3(vpor, n, c.op3(vpand, n, v, c.splat(8, 0xffffffff, n)), c.splat(8, two52, n))
		return c.op3(vaddpd, n, high, low)
	case pair{ir.Float32, ir.Int64}, pair{ir.Float32, ir.Uint64}:
		return c.changeAVX2(ir.Float64, to, c.op2(vcvtps2pd, n, n, v))
	case pair{ir.Float64, ir.Int64}:
		return c.eachLane(ir.Int64, []value{v}, func(x []mem, d mem) {
			c.vector(vcvttsd2si, 16, args{reg: uint8(rax), rm: inMem(x[0]), imm: noImm})
			c.store(d, rax)
		})
	case pair{ir.Float64, ir.Uint64}:
		half := double(0x1p63)
		above := c.op3i(vcmppd, n, half, v, predicates[ir.Le])
		less := c.op3(vsubpd, n, v, c.op3(vpand, n, above, half))
		return c.op3(vpxor, n, c.changeAVX2(ir.Float64, ir.Int64, less), c.op3(vpand, n, above, c.splat(8, 1<<63, n)))
	case pair{ir.Int64, ir.Float32}:
		return c.eachLane(ir.Float32, []value{v}, func(x []mem, d mem) {
			c.vector(vcvtsi2ss, 16, args{reg: c.laneReg, v: c.laneReg, rm: inMem(x[0]), imm: noImm})
			c.vector(vmovssTo, 16, args{reg: c.laneReg, rm: inMem(d), imm: noImm})
		})
	case pair{ir.Uint64, ir.Float32}:
		// For 2^63 and more: convert half of it, with the lost bit in its lowest bit, and double
		// that.
		one := c.splat(8, 1, n)
		half := c.op3(vpor, n, c.op2i(vpsrlq, n, n, v, 1), c.op3(vpand, n, v, one))
		big := c.op3(vpcmpgtq, n, c.splat(8, 0, n), v)
		m := c.bytes(to)
		f := c.changeAVX2(ir.Int64, ir.Float32, c.blend(i64, n, big, half, v))
		return c.op3(vaddps, m, f, c.op3(vpand, m, f, c.lanesAs(big, m)))
	}
	c.fail("no conversion of %v to %v", from, to)
	return v
}

func bitcast(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	from, to := dts[0], in.DT
	switch {
	case from == to:
		return x[0]
	case from == ir.Bool || to == ir.Bool:
		return convert(c, in, x, dts) // one byte, 0 or 1
	case from.Size() < 4:
		return c.fit(to, from, x[0])
	}
	return x[0]
}
