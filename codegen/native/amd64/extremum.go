package amd64

import (
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// Maximum and Minimum of floats as primitives: NaN wins, and -0 is below +0. Joins of two elements
// use them, see [ISA.Spells]; in kernels they are lowered.

// rangeOf is the immediate of vrange: the choice, and that the result keeps its own sign.
func rangeOf(least bool) int16 {
	if least {
		return 4
	}
	return 5
}

func extremumOf(least bool) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		k, n := native.Kinds[in.DT], c.Bytes(in.DT)
		if k != native.F32 && k != native.F64 {
			c.Fail("%v of %v is not a primitive", in.Op, in.DT)
			return x[0]
		}
		if !c.evex {
			return c.extremumVEX(k, n, least, x[0], x[1])
		}
		o := vrangeps
		if k == native.F64 {
			o = vrangepd
		}
		return c.Item(native.Item{Size: n, D: c.Vec(n), S: [3]native.Value{x[0], x[1]}, AtFirst: true, Imm: native.NoImm, Emit: func(r *native.Regs) {
			m := c.Take(&c.Masks)
			c.vector(o, n, args{reg: r.D, v: r.S[0], RM: native.InReg(r.S[1]), imm: rangeOf(least)})
			c.vector(kcmps[k], n, args{reg: m, v: r.S[0], RM: native.InReg(r.S[1]), imm: native.Unordered})
			c.vector(adds[k], n, args{reg: r.D, v: r.S[0], RM: native.InReg(r.S[1]), k: m, imm: native.NoImm})
		}})
	}
}

// extremumVEX takes the extremum in both orders of the operands. If both are zeros, the instruction
// gives its second operand, so the two results have the bits of both zeros. Otherwise they are
// equal.
func (c *machine) extremumVEX(k native.Kind, n int, least bool, x, y native.Value) native.Value {
	o, logic := maxs[k], vpand
	if least {
		o, logic = mins[k], vpor
	}
	r := c.Op3(logic, n, c.Op3(o, n, x, y), c.Op3(o, n, y, x))
	m := c.Op3i(cmps[k], n, x, y, native.Unordered)
	return c.Item(native.Item{O: blendvs[k], Size: n, D: c.Vec(n), S: [3]native.Value{r, c.Op3(adds[k], n, x, y), m}, Imm: native.NoImm})
}

// JoinExtreme joins vector u of n of a step to an accumulator.
func (c *machine) JoinExtreme(a *native.Accumulator, k native.Kind, least bool, v native.Value, u, n int) {
	size := c.Vals[v].Size
	o, logic, all := maxs[k], c.bitwise(&logicAnd, k), int16(0x80)
	if least {
		o, logic, all = mins[k], c.bitwise(&logicOr, k), 0xfe
	}
	c.Item(native.Item{O: o, Size: size, D: a.Lanes[u], S: [3]native.Value{a.Lanes[u], v}, Imm: native.NoImm})
	before := a.Last
	if n == 1 {
		before = v
	} else if u%2 == 0 {
		a.Last = v
		return
	}
	if c.evex {
		c.Item(native.Item{O: vpternlogd, Size: size, D: a.Sign, S: [3]native.Value{before, v}, Imm: all})
		m := a.Real[u/2%native.ExtremeMasks]
		c.Item(native.Item{O: kcmps[k], Size: size, D: m, S: [3]native.Value{before, v}, K: m, Imm: native.Ordered})
		return
	}
	for _, x := range []native.Value{before, v} {
		c.Item(native.Item{O: logic, Size: size, D: a.Sign, S: [3]native.Value{a.Sign, x}, Imm: native.NoImm})
	}
	m := c.Op3i(cmps[k], size, before, v, native.Ordered)
	c.Item(native.Item{O: vpand, Size: size, D: a.Real[0], S: [3]native.Value{a.Real[0], m}, Imm: native.NoImm})
}

// ExtremeOf is the extremum of an accumulator's lanes, with its sign of zero and its NaNs.
func (c *machine) ExtremeOf(a *native.Accumulator, k native.Kind, least bool) native.Value {
	n, o := c.Vals[a.Sign].Size, maxs[k]
	if least {
		o = mins[k]
	}
	elem, top := native.SignBit(k)
	x := a.Lanes[0]
	for _, v := range a.Lanes[1:] {
		x = c.Op3(o, n, x, v)
	}
	zero := c.Splat(elem, 0, n)
	sign := c.Op3(c.bitwise(&logicAnd, k), n, a.Sign, c.Splat(elem, top, n))
	nan := c.Splat(elem, ^uint64(0), n)
	if c.evex {
		x = c.blend(k, n, c.toMask(kcmps[k], n, x, zero, 0), sign, x)
		x = c.blend(k, n, c.toMask(kandw, c.Lanes, a.Real[0], a.Real[1], native.NoImm), x, nan)
	} else {
		choose := func(m, x, y native.Value) native.Value {
			return c.Item(native.Item{O: blendvs[k], Size: n, D: c.Vec(n), S: [3]native.Value{y, x, m}, Imm: native.NoImm})
		}
		x = choose(c.Op3i(cmps[k], n, x, zero, 0), sign, x)
		x = choose(a.Real[0], x, nan)
	}
	return x
}
