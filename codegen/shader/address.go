package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// coords splits src, in row-major order over dims [from,to), into coordinates c<from>… . The dim of
// the lanes counts vectors.
func (p *printer) coords(src string, from, to int) {
	if from == to {
		return
	}
	rest := src
	for d := to - 1; d > from; d-- {
		w := wordDims + dimWords*d
		p.f("let q%d $u32 = %s;", d, p.quotient(rest, w, 1))
		p.f("let %s $u32 = %s - q%d * %s;", p.coord(d), rest, d, runWord(w))
		rest = fmt.Sprintf("q%d", d)
	}
	p.f("let %s $u32 = %s;", p.coord(from), rest)
}

// coord names the variable that coords sets for dim d: a coordinate, or the number of a block of
// neighbours or of a square.
func (p *printer) coord(d int) string {
	switch {
	case p.v.eachAlong(d) > 1, p.v.Turn > 0 && d == p.v.Turn-1:
		return "block"
	case p.v.staged() && d == p.v.Rank-1:
		return "column"
	}
	return fmt.Sprintf("c%d", d)
}

// quotient divides x, over lanes, by the dim at word w. GPUs divide integers slowly, and software
// devices one lane at a time. So the quotient is the high half of a product, shifted (see divisor).
func (p *printer) quotient(x string, w, lanes int) string {
	const name = "mr_quotient"
	m, s := p.splat(runWord(w+1), "u32", lanes), p.splat(runWord(w+2), "u32", lanes)
	text := fmt.Sprintf("%s(%s, %s, %s)", name, x, m, s)
	if lanes == 1 && p.v.Lanes > 1 {
		p.single[name] = true
		return forOneLane(text)
	}
	p.uses[name] = true
	return text
}

// linear is the position of operand k in its own unit, for the first lane, over the coordinates of
// dims [0,to).
func (p *printer) linear(k, to int) string {
	if p.based != nil && p.based[k] && to > p.v.Kept {
		terms := append([]string{fmt.Sprintf("base%d", k)}, p.terms(k, p.v.Kept, to)...)
		if p.v.Each > 1 { // last, because it is constant: compilers then share the rest
			terms = append(terms, p.along(k, p.v.Kept-1, p.neighbour())...)
		}
		return strings.Join(terms, " + ")
	}
	return strings.Join(append([]string{runWord(p.slots.args[k].offset)}, p.terms(k, 0, to)...), " + ")
}

// terms are the contributions of the coordinates of dims [from,to) to a position.
func (p *printer) terms(k, from, to int) []string {
	var terms []string
	for d := from; d < to; d++ {
		terms = append(terms, p.along(k, d, fmt.Sprintf("c%d", d))...)
	}
	return terms
}

// along is the contribution of coordinate c of dim d to a position: a product.
func (p *printer) along(k, d int, c string) []string {
	a, s := p.v.Args[k], p.slots.args[k]
	inner := d == p.v.laneDim()
	switch {
	case inner && a.Class == codegen.Splat, a.Still && p.v.eachAlong(d) > 1, inner && p.v.Ragged && !a.Vec:
		return nil
	case inner && (a.Vec || a.Class == codegen.Contiguous && p.v.Lanes == 1):
		if p.apart != "" && d >= p.v.Kept {
			c = p.apart
		}
	case inner && a.Class == codegen.Contiguous:
		c = fmt.Sprintf("%s * %du", c, p.v.Lanes)
	case inner && p.v.Lanes > 1:
		c = fmt.Sprintf("%s * %du * %s", c, p.v.Lanes, runWord(s.stride+d))
	default:
		c = fmt.Sprintf("%s * %s", c, runWord(s.stride+d))
	}
	return []string{c}
}

// bases writes, once per row, the contribution of the row to the positions of operands that are
// read or written at its points, because compilers do not move it out of loops.
func (p *printer) bases() {
	p.based = make([]bool, len(p.k.Operands))
	for i, in := range p.code {
		if o, ok := operandOf(in); ok && p.rows.level[i] == codegen.Point {
			p.based[o] = true
		}
	}
	for _, s := range p.k.Stores {
		p.based[s.Operand] = !p.k.Operands[s.Operand].Row && !p.v.Args[s.Operand].Skip
	}
	kept := p.v.Kept
	if p.v.Each > 1 {
		kept--
		p.f("let first $u32 = %s;", p.firstOfEach())
	}
	for k := range p.based {
		terms := p.terms(k, 0, kept)
		if p.v.Each > 1 {
			terms = append(terms, p.along(k, kept, "first")...)
		}
		if p.based[k] = p.based[k] && len(terms) > 0; p.based[k] {
			p.f("let %s $u32 = %s;", p.begins(k), strings.Join(append([]string{runWord(p.slots.args[k].offset)}, terms...), " + "))
		}
	}
}

// spread reports that each lane of operand k has its own position.
func (p *printer) spread(k int) bool {
	a := p.v.Args[k]
	return p.lanes > 1 && !a.Vec && a.Class != codegen.Splat
}

// position writes the position of operand k as a<k>: one number, or one per lane if spread.
func (p *printer) position(k int) string {
	a, s := p.v.Args[k], p.slots.args[k]
	name := fmt.Sprintf("a%d", k)
	if p.indexed == nil {
		p.indexed = map[int]bool{}
	}
	if p.indexed[^k] { // it was written before, for a load with another guard
		return name
	}
	p.indexed[^k] = true
	pos := p.linear(k, p.dims)
	lanes := 1
	if p.spread(k) {
		lanes = p.lanes
		typ := p.vec("u32", lanes)
		steps := fmt.Sprintf("%s(0u, 1u, 2u, 3u)", typ)
		if p.v.Ragged {
			steps = "inside"
		}
		if a.Class != codegen.Contiguous {
			steps += " * " + p.splat(runWord(s.stride+p.v.laneDim()), "u32", p.lanes)
		}
		pos = fmt.Sprintf("%s(%s) + %s", typ, pos, steps)
	}
	let := func(name, pos string) { p.f("let %s %s = %s;", name, p.vec("u32", lanes), pos) }
	if len(s.stages) == 0 {
		let(name, pos)
		return name
	}
	wide := func(w int) string { return p.splat(runWord(w), "u32", lanes) }
	for j, st := range s.stages {
		in := fmt.Sprintf("%sg%d", name, j)
		let(in, pos)
		terms := []string{wide(st.offset)}
		for d := a.Stages[j] - 1; d >= 0; d-- {
			if d == 0 {
				terms = append(terms, fmt.Sprintf("%s * %s", in, wide(st.stride)))
				break
			}
			next := fmt.Sprintf("%sg%dq%d", name, j, d)
			w := st.dims + dimWords*d
			let(next, p.quotient(in, w, lanes))
			terms = append(terms, fmt.Sprintf("(%s - %s * %s) * %s", in, next, wide(w), wide(st.stride+d)))
			in = next
		}
		pos = strings.Join(terms, " + ")
	}
	let(name, pos)
	return name
}

// load reads operand k into every lane, as values of dt.
func (p *printer) load(k int, dt ir.DType) string {
	if p.v.Args[k].Turned {
		return p.fromMemory(k, dt, p.turned(k))
	}
	return p.loadFrom(k, dt, p.position(k), p.spread(k))
}

// loadFrom is load from a position; with spread, each lane has a position.
func (p *printer) loadFrom(k int, dt ir.DType, pos string, spread bool) string {
	a, lanes := p.v.Args[k], p.lanes
	mem := p.v.Bindings[a.Binding].word()
	text := p.element(k, pos)
	switch {
	case spread:
		at := make([]string, lanes)
		for l := range at {
			at[l] = p.element(k, fmt.Sprintf("%s.%c", pos, "xyzw"[l]))
		}
		text = fmt.Sprintf("%s(%s)", p.vec(mem, lanes), strings.Join(at, ", "))
	case !a.Vec:
		text = p.splat(text, mem, lanes)
	}
	return p.fromMemory(k, dt, text)
}

// fromMemory converts the memory form of operand k to values of dt.
func (p *printer) fromMemory(k int, dt ir.DType, text string) string {
	b := p.v.Bindings[p.v.Args[k].Binding]
	if b.word() != memTypes[dt] {
		text = p.bits(p.vec(memTypes[dt], p.lanes), text)
	}
	if b.Size > 0 && memTypes[dt] == "i32" { // the sign is that of the narrow element
		text = p.fill(fmt.Sprintf("($0 << $U(%[1]du)) >> $U(%[1]du)", 32-8*int(b.Size)), p.lanes, text)
	}
	if dt == ir.Bool {
		text = p.call("ne", p.lanes, text, p.splat("0u", "u32", p.lanes))
	}
	return text
}

// toMemory writes a value of dt in the memory form of binding b, over lanes.
func (d *Dialect) toMemory(val string, dt ir.DType, b Binding, lanes int) string {
	if dt == ir.Bool {
		val = d.call("select", lanes, d.splat("0u", "u32", lanes), d.splat("1u", "u32", lanes), val)
	}
	if b.word() != memTypes[dt] {
		val = d.call("bits", lanes, d.vec(b.word(), lanes), val)
	}
	return val
}

// guards are the conditions under which a point stores through operand k.
func (p *printer) guards(k, to int) []string {
	var conds []string
	for d := range to {
		if p.v.Args[k].Guard>>d&1 != 0 {
			conds = append(conds, fmt.Sprintf("c%d == 0u", d))
		}
	}
	return conds
}

// store writes val through operand k at the current point or vector.
func (p *printer) store(k int, val string, dt ir.DType) {
	a := p.v.Args[k]
	if a.Skip {
		return
	}
	lanes := p.lanes
	conds := p.guards(k, p.dims)
	if len(conds) > 0 {
		p.open("if (%s) {", strings.Join(conds, " && "))
	}
	pos := p.position(k)
	binding := p.v.Bindings[a.Binding]
	p.f("let m%d %s = %s;", k, p.vec(binding.word(), lanes), p.toMemory(val, dt, binding, lanes))
	b := fmt.Sprintf("b%d", a.Binding)
	lane := func(l int) string { // statement that stores one lane
		c := "xyzw"[l]
		if a.Vec {
			return fmt.Sprintf("%s[%s].%c = m%d.%c;", b, pos, c, k, c)
		}
		return fmt.Sprintf("%s[%s.%c] = m%d.%c;", b, pos, c, k, c)
	}
	inner := fmt.Sprintf("c%d * %du", p.v.laneDim(), lanes)
	switch {
	case lanes == 1:
		p.f("%s[%s] = m%d;", b, pos, k)
	case p.masked:
		p.storeWithin(k, pos, lane)
	case a.Class == codegen.Splat: // guarded: lane 0 is position 0
		p.f("%s[%s] = m%d.x;", b, pos, k)
	case a.Vec && !p.v.Tail:
		p.f("%s[%s] = m%d;", b, pos, k)
	case !p.v.Tail:
		for l := range lanes {
			p.f("%s", lane(l))
		}
	default:
		for l := range lanes {
			p.open("if (%s + %du < %s) {", inner, l, runWord(wordInner))
			p.f("%s", lane(l))
			p.end()
		}
	}
	if len(conds) > 0 {
		p.end()
	}
}

// indexLow is the low word of operand k's position: a base plus a distance that fits 32 bits.
// Staged positions fit without a base.
func (p *printer) indexLow(k int) string {
	pos := p.indexDistance(k)
	if len(p.v.Args[k].Stages) > 0 {
		return pos
	}
	return fmt.Sprintf("%s + %s", pos, p.splat(runWord(p.slots.args[k].base), "u32", p.lanes))
}

// indexHigh is the high word: that of the base, plus one if the low word wrapped.
func (p *printer) indexHigh(k int) string {
	lanes := p.lanes
	if len(p.v.Args[k].Stages) > 0 {
		return p.splat("0u", "u32", lanes)
	}
	s := p.slots.args[k]
	pos := p.indexDistance(k)
	low := p.splat(runWord(s.base), "u32", lanes)
	return p.fill("$0 + $select($1, $2, $lt($3 + $4, $4))", lanes, p.splat(runWord(s.base+1), "u32", lanes),
		p.splat("0u", "u32", lanes), p.splat("1u", "u32", lanes), pos, low)
}

// indexDistance names the distance over all lanes, and writes it once per body.
func (p *printer) indexDistance(k int) string {
	name := fmt.Sprintf("d%d", k)
	if p.indexed == nil {
		p.indexed = map[int]bool{}
	}
	if !p.indexed[k] {
		p.indexed[k] = true
		pos := p.position(k)
		if !p.spread(k) {
			pos = p.splat(pos, "u32", p.lanes)
		}
		p.f("let %s $U = %s;", name, pos)
	}
	return name
}
