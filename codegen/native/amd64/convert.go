package amd64

import (
	"math"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// pair is a conversion between dtypes as lanes hold them.
type pair struct{ from, to ir.DType }

// conversions are those of both amd64 targets, conversions512 those of AVX-512 only.
var conversions = map[pair]native.Op{
	{ir.Int32, ir.Float32}: vcvtdq2ps, {ir.Float32, ir.Int32}: vcvttps2dq,
	{ir.Int32, ir.Float64}: vcvtdq2pd, {ir.Float64, ir.Int32}: vcvttpd2dq,
	{ir.Float32, ir.Float64}: vcvtps2pd, {ir.Float64, ir.Float32}: vcvtpd2ps,
}

var conversions512 = map[pair]native.Op{
	{ir.Uint32, ir.Float32}: vcvtudq2ps, {ir.Float32, ir.Uint32}: vcvttps2udq,
	{ir.Uint32, ir.Float64}: vcvtudq2pd, {ir.Float64, ir.Uint32}: vcvttpd2udq,
	{ir.Int64, ir.Float64}: vcvtqq2pd, {ir.Uint64, ir.Float64}: vcvtuqq2pd,
	{ir.Int64, ir.Float32}: vcvtqq2ps, {ir.Uint64, ir.Float32}: vcvtuqq2ps,
	{ir.Float32, ir.Int64}: vcvttps2qq, {ir.Float32, ir.Uint64}: vcvttps2uqq,
	{ir.Float64, ir.Int64}: vcvttpd2qq, {ir.Float64, ir.Uint64}: vcvttpd2uqq,
}

// Change converts between dtypes of which one has 64 bits or is a float.
func (c *machine) Change(from, to ir.DType, v native.Value) native.Value {
	n := max(c.Bytes(from), c.Bytes(to))
	o := conversions[pair{from, to}]
	if o == native.OpNone && c.evex {
		o = conversions512[pair{from, to}]
	}
	if o != native.OpNone {
		return c.Op2(o, n, c.Bytes(to), v)
	}
	switch {
	case from.IsInt() && to.IsInt() && native.SizeOf(from) == native.SizeOf(to):
		return v
	case from.IsInt() && to.IsInt() && native.SizeOf(from) == 8:
		return c.Halved(v)
	case from.IsInt() && to.IsInt() && from.IsSigned():
		return c.Op2(vpmovsxdq, n, n, v)
	case from.IsInt() && to.IsInt():
		return c.Op2(vpmovzxdq, n, n, v)
	}
	return c.changeAVX2(from, to, v)
}

// Floats whose last bit has the value 1, and 2^32.
const (
	two52 = 0x43300000_00000000 // 2^52
	two84 = 0x45300000_00000000 // 2^84
)

// changeAVX2 makes conversions for which AVX2 has no instruction.
func (c *machine) changeAVX2(from, to ir.DType, v native.Value) native.Value {
	n := max(c.Bytes(from), c.Bytes(to))
	double := func(x float64) native.Value { return c.Splat(8, math.Float64bits(x), n) }
	switch (pair{from, to}) {
	case pair{ir.Uint32, ir.Float32}:
		// The halves are exact, and so is the upper half's multiple: only the sum rounds.
		high := c.Op2(vcvtdq2ps, n, n, c.Op2i(vpsrld, n, n, v, 16))
		low := c.Op2(vcvtdq2ps, n, n, c.Op3(vpand, n, v, c.Splat(4, 0xffff, n)))
		return c.Op3(vaddps, n, c.Op3(vmulps, n, high, c.Splat(4, uint64(math.Float32bits(65536)), n)), low)
	case pair{ir.Float32, ir.Uint32}:
		half := c.Splat(4, uint64(math.Float32bits(1<<31)), n)
		above := c.Op3i(vcmpps, n, half, v, predicates[ir.Le])
		less := c.Op3(vsubps, n, v, c.Op3(vpand, n, above, half))
		return c.Op3(vpxor, n, c.Op2(vcvttps2dq, n, n, less), c.Op3(vpand, n, above, c.Splat(4, 1<<31, n)))
	case pair{ir.Uint32, ir.Float64}:
		bits := c.Op3(vpor, n, c.Op2(vpmovzxdq, n, n, v), c.Splat(8, two52, n))
		return c.Op3(vsubpd, n, bits, c.Splat(8, two52, n))
	case pair{ir.Float64, ir.Uint32}:
		whole := c.Op2i(vroundpd, n, n, v, 11)
		return c.Halved(c.Op3(vaddpd, n, whole, c.Splat(8, two52, n)))
	case pair{ir.Int64, ir.Float64}, pair{ir.Uint64, ir.Float64}:
		// The halves become floats of their own; subtracting the bias from the upper one is exact.
		high, bias := c.Op2i(vpsrlq, n, n, v, 32), math.Float64frombits(two84)+0x1p52
		if from == ir.Int64 {
			high, bias = c.Op3(vpxor, n, high, c.Splat(8, 1<<31, n)), bias+0x1p63
		}
		high = c.Op3(vsubpd, n, c.Op3(vpor, n, high, c.Splat(8, two84, n)), double(bias))
		low := c.Op3(vpor, n, c.Op3(vpand, n, v, c.Splat(8, 0xffffffff, n)), c.Splat(8, two52, n))
		return c.Op3(vaddpd, n, high, low)
	case pair{ir.Float32, ir.Int64}, pair{ir.Float32, ir.Uint64}:
		return c.changeAVX2(ir.Float64, to, c.Op2(vcvtps2pd, n, n, v))
	case pair{ir.Float64, ir.Int64}:
		return c.EachLane(ir.Int64, []native.Value{v}, func(x []native.Mem, d native.Mem) {
			c.vector(vcvttsd2si, 16, args{reg: uint8(native.RAX), RM: native.InMem(x[0]), imm: native.NoImm})
			c.Store(d, native.RAX)
		})
	case pair{ir.Float64, ir.Uint64}:
		half := double(0x1p63)
		above := c.Op3i(vcmppd, n, half, v, predicates[ir.Le])
		less := c.Op3(vsubpd, n, v, c.Op3(vpand, n, above, half))
		return c.Op3(vpxor, n, c.changeAVX2(ir.Float64, ir.Int64, less), c.Op3(vpand, n, above, c.Splat(8, 1<<63, n)))
	case pair{ir.Int64, ir.Float32}:
		return c.EachLane(ir.Float32, []native.Value{v}, func(x []native.Mem, d native.Mem) {
			c.vector(vcvtsi2ss, 16, args{reg: c.LaneReg, v: c.LaneReg, RM: native.InMem(x[0]), imm: native.NoImm})
			c.vector(vmovssTo, 16, args{reg: c.LaneReg, RM: native.InMem(d), imm: native.NoImm})
		})
	case pair{ir.Uint64, ir.Float32}:
		// For 2^63 and more: convert half of it, with the lost bit in its lowest bit, and double
		// that.
		one := c.Splat(8, 1, n)
		half := c.Op3(vpor, n, c.Op2i(vpsrlq, n, n, v, 1), c.Op3(vpand, n, v, one))
		big := c.Op3(vpcmpgtq, n, c.Splat(8, 0, n), v)
		m := c.Bytes(to)
		f := c.changeAVX2(ir.Int64, ir.Float32, c.blend(native.I64, n, big, half, v))
		return c.Op3(vaddps, m, f, c.Op3(vpand, m, f, c.LanesAs(big, m)))
	}
	c.Fail("the conversion of %v to %v is not supported", from, to)
	return v
}
