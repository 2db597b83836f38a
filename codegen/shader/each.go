package shader

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A shader of rows with Variant.Each computes that many neighbours along the last kept dim at once:
// rows, or vectors of rows if lanes are rows. Values that each neighbour has for itself are in
// arrays, and their code is in a loop over j, the number of the neighbour. Shared values are loaded
// and computed once, before the loop.

// eachAlong is the number of neighbours that a shader computes along dim d.
func (v *Variant) eachAlong(d int) int64 {
	if v.Each > 1 && d == v.Kept-1 {
		return int64(v.Each)
	}
	return 1
}

// own is the element of a variable for the present neighbour.
func (p *printer) own(name string) string {
	if p.v.Each > 1 {
		return name + "[j]"
	}
	return name
}

// each prints code for one neighbour: as it is if there is only one, else in a loop. Names and
// loads in the code are valid only within it.
func (p *printer) each(body func()) {
	if p.v.Each < 2 {
		body()
		return
	}
	out, indexed := p.out, p.indexed
	p.out, p.indexed = new(strings.Builder), maps.Clone(indexed)
	p.indent++
	body()
	p.indent--
	text := p.out.String()
	p.out, p.indexed = out, indexed
	if text == "" {
		return
	}
	if c := fmt.Sprintf("c%d", p.v.Kept-1); regexp.MustCompile(`\b` + c + `\b`).MatchString(text) {
		q := &printer{Dialect: p.Dialect, lanes: p.lanes, indent: p.indent + 1, out: new(strings.Builder)}
		q.f("let %s $u32 = first + %s;", c, p.neighbour())
		text = q.out.String() + text
	}
	if p.v.Each < eachApart {
		p.loop("j", "0u", fmt.Sprintf("%du", p.v.Each), "1u")
		p.out.WriteString(text)
		p.end()
		return
	}
	for j := range p.v.Each {
		p.open("{")
		p.f("let j $u32 = %du;", j)
		p.out.WriteString(text)
		p.end()
	}
}

// firstOfEach is the coordinate of a block's first neighbour. neighbour is the distance of
// neighbour j from it.
func (p *printer) firstOfEach() string {
	if p.v.Each >= eachApart {
		return fmt.Sprintf("block / %du * %du + block %% %du", Apart, p.v.Each*Apart, Apart)
	}
	return fmt.Sprintf("block * %du", p.v.Each)
}

func (p *printer) neighbour() string {
	if p.v.Each >= eachApart {
		return fmt.Sprintf("j * %du", Apart)
	}
	return "j"
}

// A few neighbours are adjacent. From eachApart neighbours on, those of Apart invocations
// alternate, so that these invocations together read adjacent memory. The code for each neighbour
// is then written out, because compilers of software adapters do not keep an array in registers if
// a loop indexes it.
const (
	Apart     = 8
	eachApart = 16
)

// state is a variable that a pass updates along its rows.
type state struct{ name, typ, start string }

// startStates declares the variables of a pass.
func (p *printer) startStates(list []state) {
	if p.v.Each < 2 {
		for _, s := range list {
			p.f("var %s %s = %s;", s.name, s.typ, s.start)
		}
		return
	}
	for _, s := range list {
		p.f("array %s %s %d;", s.name, s.typ, p.v.Each)
	}
	p.each(func() {
		for _, s := range list {
			p.f("%s[j] = %s;", s.name, s.start)
		}
	})
}

// still marks the values that all neighbours share.
func still(k *codegen.Kernel, v *Variant) []bool {
	list := make([]bool, len(k.Body))
	for i, in := range k.Body {
		list[i] = !in.Op.Info().RowOp
		if o, ok := operandOf(in); ok {
			list[i] = v.Args[o].Still
		}
		for _, a := range in.Args {
			list[i] = list[i] && (a == ir.None || list[a])
		}
	}
	return list
}

// shared reports a value that is computed once for all neighbours.
func (p *printer) shared(i int) bool { return p.v.Each > 1 && p.still[i] }

// keep makes row values that are needed after the loop which computes them outlive it. end prints
// the code for the end of that loop.
func (p *printer) keep(values []int, pass int) (end func()) {
	if p.v.Each < 2 {
		return func() {}
	}
	values = slices.DeleteFunc(slices.Clone(values), func(i int) bool { return !p.later(i, pass) })
	for _, i := range values {
		dt := p.code[i].DT
		if isWide(dt) {
			p.fail("64-bit values of several rows: %w", ir.ErrUnsupported)
		}
		p.f("array row%d %s %d;", i, p.vec(scalarTypes[dt], p.lanes), p.v.Each)
	}
	return func() {
		for _, i := range values {
			name := fmt.Sprintf("row%d[j]", i)
			p.f("%s = %s;", name, p.vals[i])
			p.vals[i] = name
		}
	}
}

// later reports that a pass, or code behind it, uses a row value that is computed before it.
func (p *printer) later(i, pass int) bool {
	for _, s := range p.k.Stores {
		if int(s.Value) == i {
			return true
		}
	}
	for c, in := range p.code {
		if slices.Contains(in.Args[:], ir.Ref(i)) && (in.Op.Info().RowOp || p.rows.level[c] == codegen.Point || p.rows.pass[c] > pass) {
			return true
		}
	}
	return false
}
