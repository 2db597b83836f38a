package amd64

import (
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// divideRange gives the range of elements that may be multiplied, as bits without the sign and
// shifted left by one: its start and its length. least and most are the range of divisors, not
// shifted. Elements: 2^-100 to 2^100 for Float32, 2^-900 to 2^900 for Float64. Divisors: 2^-24 to
// 2^24 and 2^-100 to 2^100.
func divideRange(k native.Kind) (from, span, least, most uint64) {
	if k == native.F64 {
		return (1023 - 900) << 53, 1800 << 53, (1023 - 100) << 52, (1023 + 100) << 52
	}
	return (127 - 100) << 24, 200 << 24, (127 - 24) << 23, (127 + 24) << 23
}

// ReciprocalOf is the reciprocal of a divisor.
func (c *machine) ReciprocalOf(dt ir.DType, y native.Value) native.Value {
	k, n := native.Kinds[dt], c.Bytes(dt)
	elem, _ := native.SignBit(k)
	one := uint64(127) << 23
	if k == native.F64 {
		one = 1023 << 52
	}
	return c.Op3(divs[k], n, c.Splat(elem, one, n), y)
}

// SpanOf is the length of the range of elements that are multiplied: 0 if the divisor is not about 1.
func (c *machine) SpanOf(dt ir.DType, y native.Value) native.Value {
	k, n := native.Kinds[dt], c.Bytes(dt)
	elem, top := native.SignBit(k)
	_, span, least, most := divideRange(k)
	integers := ir.Uint32
	if top>>32 != 0 {
		integers = ir.Uint64
	}
	above := c.Op3(subs[native.Kinds[integers]], n, y, c.Splat(elem, least, n))
	near := c.toMask(kcmpus[native.Kinds[integers]], n, above, c.Splat(elem, most-least, n), intPredicates[ir.Lt])
	return c.blend(k, n, near, c.Splat(elem, span, n), c.Splat(elem, 0, n))
}

// DivideBy divides x by y, of which reciprocal and span are the data.
func (c *machine) DivideBy(dt ir.DType, x, y, reciprocal, span native.Value) native.Value {
	k, n := native.Kinds[dt], c.Bytes(dt)
	elem, _ := native.SignBit(k)
	i, any, multiplyLess, less := native.I32, vptestmd, vfmsub231ps, vfnmadd231ps
	if k == native.F64 {
		i, any, multiplyLess, less = native.I64, vptestmq, vfmsub231pd, vfnmadd231pd
	}
	from, _, _, _ := divideRange(k)
	low := c.Constant(native.Constant{Bits: from, Size: uint8(elem), Count: 1})
	low.Step = uint8(elem)
	in := c.Vals[span].Mem
	return c.Item(native.Item{Size: n, D: c.Vec(n), S: [3]native.Value{x, y, reciprocal}, Tmps: 1, AtFirst: true, Imm: native.NoImm, Emit: func(r *native.Regs) {
		x, y, z, t := r.S[0], r.S[1], r.S[2], r.Tmp[0]
		m := c.Take(&c.Masks)
		slow, back := c.NewLabel(), c.NewLabel()
		// Neither zero nor within the range; the addition shifts out the sign.
		c.vector(adds[i], n, args{reg: t, v: x, RM: native.InReg(x), imm: native.NoImm})
		c.vector(any, n, args{reg: m, v: t, RM: native.InReg(t), imm: native.NoImm})
		c.vector(subs[i], n, args{reg: t, v: t, RM: native.InMem(low), imm: native.NoImm})
		c.vector(kcmpus[i], n, args{reg: m, v: t, RM: native.InMem(in), k: m, imm: intPredicates[ir.Ge]})
		c.vector(kortestw, 16, args{reg: m, RM: native.InReg(m), imm: native.NoImm})
		c.JumpIf(native.NotEqual, slow)
		c.vector(muls[k], n, args{reg: r.D, v: x, RM: native.InReg(z), imm: native.NoImm})
		c.CopyVec(t, x, n)
		c.vector(multiplyLess, n, args{reg: t, v: r.D, RM: native.InReg(y), imm: native.NoImm})
		c.vector(less, n, args{reg: r.D, v: t, RM: native.InReg(z), imm: native.NoImm})
		c.Place(back)
		c.Cold = append(c.Cold, func() {
			c.Place(slow)
			c.vector(divs[k], n, args{reg: r.D, v: x, RM: native.InReg(y), imm: native.NoImm})
			c.Jump(back)
		})
	}})
}
