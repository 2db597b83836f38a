package shader

import "fmt"

// A Map may read operands across, as a transposition does. It then goes by squares of its innermost
// dim and of the dim along which these operands are contiguous. On hardware a workgroup has one
// square: it reads the square in the order of the operand's memory into workgroup memory, and
// writes it in the order of the results. For software adapters workgroup memory is as slow as any
// other. Their invocations go along that dim in a loop, and so read a line of the operand while a
// cache has it.

// side is the side of a workgroup's square. Its lines have one more element, so that neighbours are
// in different banks in both orders.
const side = 32

// staged reports a Map of squares that are stored in workgroup memory.
func (v *Variant) staged() bool { return v.Turn > 0 && v.Steps == 0 }

// turnAlong is the number of points along dim d that are computed together.
func (v *Variant) turnAlong(d int) int64 {
	switch {
	case v.staged() && (d == v.Turn-1 || d == v.Rank-1):
		return side
	case v.Turn-1 == d && v.Turn > 0:
		return int64(v.Steps)
	}
	return 1
}

// turnSteps prints the points of an invocation along the dim along which operands are contiguous.
func (p *printer) turnSteps() {
	p.coords("i", 0, p.v.Rank)
	d, from := p.v.Turn-1, fmt.Sprintf("block * %du", p.v.Steps)
	p.f("let end $u32 = min(%s + %du, %s);", from, p.v.Steps, runWord(wordSteps))
	p.loop(fmt.Sprintf("c%d", d), from, "end", "1u")
	p.mapBody()
	p.end()
}

// turnMain prints a workgroup's square.
func (p *printer) turnMain() {
	v := p.v
	if v.Lanes > 1 || v.Group%side > 0 {
		p.fail("squares by %d lanes and groups of %d", v.Lanes, v.Group)
		return
	}
	p.begin(true)
	p.coords("i", 0, v.Rank)
	d, inner := v.Turn-1, v.Rank-1
	p.f("let near $u32 = lane %% %du;", side)
	p.f("let far $u32 = lane / %du;", side)
	steps, lines := side*side/v.Group, v.Group/side
	p.f("let c%d $u32 = min(block * %du + near, %s - 1u);", d, side, runWord(wordSteps))
	var stores []string
	for k, a := range v.Args {
		if !a.Turned {
			continue
		}
		typ := p.vec(v.Bindings[a.Binding].word(), 1)
		p.workgroup(square(k), typ, side*(side+1))
		for j := range steps { // written out, so that they wait for memory together
			l := fmt.Sprintf("l%ds%d", k, j)
			p.f("var %s %s;", l, typ)
			p.open("{")
			p.f("let c%d $u32 = min(column * %du + far + %du, %s - 1u);", inner, side, j*lines, runWord(wordInner))
			p.f("%s = %s;", l, p.element(k, p.position(k)))
			p.end()
			p.indexed = nil
			stores = append(stores, fmt.Sprintf("%s[(far + %du) * %du + near] = %s;", square(k), j*lines, side+1, l))
		}
	}
	for _, s := range stores {
		p.f("%s", s)
	}
	p.f("barrier;")
	p.loop("j", "0u", fmt.Sprintf("%du", steps), "1u")
	p.f("let c%d $u32 = block * %du + j * %du + far;", d, side, lines)
	p.f("let c%d $u32 = column * %du + near;", inner, side)
	p.open("if (c%d < %s && c%d < %s) {", d, runWord(wordSteps), inner, runWord(wordInner))
	p.mapBody()
	p.end()
	p.end()
	p.end()
}

// square is the workgroup memory of operand k, and turned is its element for the present point.
func square(k int) string { return fmt.Sprintf("turned%d", k) }

func (p *printer) turned(k int) string {
	return fmt.Sprintf("%s[near * %du + j * %du + far]", square(k), side+1, p.v.Group/side)
}
