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
	reciprocal Value
	span       Value // the range of elements that are multiplied, see divideRange; 0 if all are divided
}

// divides reports that instruction i divides each point by a value that many points share, and that
// a step has too little other work to hide the time of the divider.
func (c *code) divides(i int) bool {
	in := &c.k.Body[i]
	return !c.hidesDivisions && in.Op == ir.FDiv && c.ISA.Reciprocals && !in.DT.Storage() && c.need[i] && c.level[i] == perPoint && c.level[in.Args[1]] < perPoint
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
			home := func() Value {
				return c.NewValue(Info{Size: c.Bytes(c.k.Body[y].DT), Home: InFrame, Mem: At(RDI, c.frame.vector(c.ISA))})
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
		c.keep(c.ReciprocalOf(dt, y), d.reciprocal)
		c.keep(c.SpanOf(dt, y), d.span)
	}
}
