package native

import "github.com/millrace-go/millrace/ir"

// Maximum and Minimum of floats as primitives: NaN wins, and -0 is below +0. Joins of two elements
// use them, see [ISA.Spells]; in kernels they are lowered.

// Spells reports that the target has code for a float op that [codegen.Lower] would expand.
func (t *ISA) Spells(op ir.Op) bool { return t.primitives[op] != nil }

// rangeOf is the immediate of vrange: the choice, and that the result keeps its own sign.
func rangeOf(least bool) int16 {
	if least {
		return 4
	}
	return 5
}

func extremumOf(least bool) primitive {
	return func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		k, n := kinds[in.DT], c.bytes(in.DT)
		if k != f32 && k != f64 {
			c.fail("%v of %v is no primitive", in.Op, in.DT)
			return x[0]
		}
		if !c.isa.EVEX {
			return c.extremumVEX(k, n, least, x[0], x[1])
		}
		o := vrangeps
		if k == f64 {
			o = vrangepd
		}
		return c.item(item{size: n, d: c.vec(n), s: [3]value{x[0], x[1]}, atFirst: true, imm: noImm, emit: func(r *regs) {
			m := c.take(&c.masks)
			c.vector(o, n, args{reg: r.d, v: r.s[0], rm: inReg(r.s[1]), imm: rangeOf(least)})
			c.vector(kcmps[k], n, args{reg: m, v: r.s[0], rm: inReg(r.s[1]), imm: unordered})
			c.vector(adds[k], n, args{reg: r.d, v: r.s[0], rm: inReg(r.s[1]), k: m, imm: noImm})
		}})
	}
}

// extremumVEX takes the extremum in both orders of the operands. If both are zeros, the instruction
// gives its second operand, so the two results have the bits of both zeros. Otherwise they are
// equal.
func (c *code) extremumVEX(k kind, n int, least bool, x, y value) value {
	o, logic := maxs[k], vpand
	if least {
		o, logic = mins[k], vpor
	}
	r := c.op3(logic, n, c.op3(o, n, x, y), c.op3(o, n, y, x))
	m := c.op3i(cmps[k], n, x, y, unordered)
	return c.item(item{o: blendvs[k], size: n, d: c.vec(n), s: [3]value{r, c.op3(adds[k], n, x, y), m}, imm: noImm})
}
