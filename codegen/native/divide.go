package native

import "github.com/millrace-go/millrace/ir"

// Division of many elements by the same divisor. A core's divider takes as long for a quotient as
// its other units take for ten additions. Let z be the divisor's reciprocal, rounded to nearest,
// and q = x*z. The remainder r = q*y - x has no rounding error. Then q - r*z is the quotient,
// rounded to nearest, unless something underflows or overflows (Markstein; Brisebarre, Muller and
// Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
// advance", 2004). So this method is used if the divisor is positive and about 1, for elements that
// are zero or far from underflow and overflow; other elements are divided. Signs of zeros are
// right, too.

// divisor is the data in the frame that belongs to a common divisor.
type divisor struct {
	reciprocal value
	span       value // the range of elements that are multiplied, see divideRange; 0 if all are divided
}

// divideRange gives the range of elements that may be multiplied, as bits without the sign and
// shifted left by one: its start and its length. least and most are the range of divisors, not
// shifted. Elements: 2^-100 to 2^100 for Float32, 2^-900 to 2^900 for Float64. Divisors: 2^-24 to
// 2^24 and 2^-100 to 2^100.
func divideRange(k kind) (from, span, least, most uint64) {
	if k == f64 {
		return (1023 - 900) << 53, 1800 << 53, (1023 - 100) << 52, (1023 + 100) << 52
	}
	return (127 - 100) << 24, 200 << 24, (127 - 24) << 23, (127 + 24) << 23
}

// divides reports that instruction i divides each point by a value that many points share, and that
// a step has too little other work to hide the time of the divider.
func (c *code) divides(i int) bool {
	in := &c.k.Body[i]
	return !c.hidesDivisions && in.Op == ir.FDiv && c.isa.EVEX && !in.DT.Storage() && c.need[i] && c.level[i] == perPoint && c.level[in.Args[1]] < perPoint
}

// findDivisors gives each such divisor room in the frame.
func (c *code) findDivisors() {
	divisions := 0
	for i, in := range c.k.Body {
		if in.Op == ir.FDiv && c.need[i] && c.level[i] == perPoint {
			divisions++
		}
	}
	c.hidesDivisions = c.work() > (1+divisionWait)*divisions
	for i := range c.k.Body {
		if !c.divides(i) {
			continue
		}
		y := c.k.Body[i].Args[1]
		if c.divisors == nil {
			c.divisors = map[ir.Ref]divisor{}
		}
		if _, ok := c.divisors[y]; !ok {
			home := func() value {
				return c.newValue(info{size: c.bytes(c.k.Body[y].DT), home: inFrame, mem: at(rdi, c.frame.vector(c.isa))})
			}
			c.divisors[y] = divisor{home(), home()}
		}
	}
}

// makeDivisors appends the items that compute the data of a level's divisors.
func (c *code) makeDivisors(p *part, l level) {
	for i := range c.k.Body { // in their order
		d, ok := c.divisors[ir.Ref(i)]
		if !ok || c.level[i] != l {
			continue
		}
		y, dt := c.valueOf(p, ir.Ref(i), 0), c.k.Body[i].DT
		k, n := kinds[dt], c.bytes(dt)
		elem, top := signBit(k)
		_, span, least, most := divideRange(k)
		one := uint64(127) << 23
		if k == f64 {
			one = 1023 << 52
		}
		c.keep(c.op3(divs[k], n, c.splat(elem, one, n), y), d.reciprocal)
		integers := ir.Uint32
		if top>>32 != 0 {
			integers = ir.Uint64
		}
		above := c.op3(subs[kinds[integers]], n, y, c.splat(elem, least, n))
		near := c.toMask(kcmpus[kinds[integers]], n, above, c.splat(elem, most-least, n), intPredicates[ir.Lt])
		c.keep(c.blend(k, n, near, c.splat(elem, span, n), c.splat(elem, 0, n)), d.span)
	}
}

// divideBy divides x by y, to which d belongs.
func (c *code) divideBy(dt ir.DType, x, y value, d divisor) value {
	k, n := kinds[dt], c.bytes(dt)
	elem, _ := signBit(k)
	i, any, multiplyLess, less := i32, vptestmd, vfmsub231ps, vfnmadd231ps
	if k == f64 {
		i, any, multiplyLess, less = i64, vptestmq, vfmsub231pd, vfnmadd231pd
	}
	from, _, _, _ := divideRange(k)
	low := c.asm.constant(constant{from, uint8(elem), 1})
	low.step = uint8(elem)
	span := c.vals[d.span].mem
	return c.item(item{size: n, d: c.vec(n), s: [3]value{x, y, d.reciprocal}, tmps: 1, atFirst: true, imm: noImm, emit: func(r *regs) {
		x, y, z, t := r.s[0], r.s[1], r.s[2], r.tmp[0]
		m := c.take(&c.masks)
		slow, back := c.newLabel(), c.newLabel()
		// Neither zero nor within the range; the addition shifts out the sign.
		c.vector(adds[i], n, args{reg: t, v: x, rm: inReg(x), imm: noImm})
		c.vector(any, n, args{reg: m, v: t, rm: inReg(t), imm: noImm})
		c.vector(subs[i], n, args{reg: t, v: t, rm: inMem(low), imm: noImm})
		c.vector(kcmpus[i], n, args{reg: m, v: t, rm: inMem(span), k: m, imm: intPredicates[ir.Ge]})
		c.vector(kortestw, 16, args{reg: m, rm: inReg(m), imm: noImm})
		c.jumpIf(notEqual, slow)
		c.vector(muls[k], n, args{reg: r.d, v: x, rm: inReg(z), imm: noImm})
		c.copyVec(t, x, n)
		c.vector(multiplyLess, n, args{reg: t, v: r.d, rm: inReg(y), imm: noImm})
		c.vector(less, n, args{reg: r.d, v: t, rm: inReg(z), imm: noImm})
		c.asm.place(back)
		c.cold = append(c.cold, func() {
			c.asm.place(slow)
			c.vector(divs[k], n, args{reg: r.d, v: x, rm: inReg(y), imm: noImm})
			c.jump(back)
		})
	}})
}
