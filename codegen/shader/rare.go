package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// lookup indexes a table, which is a private array, once per lane.
func (p *printer) lookup(in ir.Instr, index string, lanes int) string {
	t := ir.TableByID(in.Imm)
	if t == nil || isWide(t.DT) || scalarTypes[t.DT] == "" {
		p.fail("table %d: %w", in.Imm, ir.ErrUnsupported)
		return index
	}
	name := identifier("t_", t.Name)
	if !p.made[name] {
		p.made[name] = true
		entries := make([]string, len(t.Bits))
		for i, b := range t.Bits {
			entries[i] = p.scalarLiteral(t.DT, b)
		}
		text := p.fill(p.Table, 1, name, p.vec(scalarTypes[t.DT], 1), fmt.Sprint(len(entries)), strings.Join(entries, ", "))
		p.global.WriteString("\n" + text + "\n")
	}
	if lanes == 1 {
		return fmt.Sprintf("%s[%s]", name, index)
	}
	at := make([]string, lanes)
	for i := range at {
		at[i] = fmt.Sprintf("%s[(%s).%c]", name, index, "xyzw"[i])
	}
	return fmt.Sprintf("%s(%s)", p.vec(scalarTypes[t.DT], lanes), strings.Join(at, ", "))
}

// rare writes the slow path as a function of one lane. It is called for the lanes that need it, and
// only if some lane does.
func (p *printer) rare(i int, in ir.Instr) {
	prog := ir.SubByID(in.Imm)
	if prog == nil {
		p.fail("no sub-program %d", in.Imm)
		return
	}
	name := identifier([...]string{plain: "sub_", opaque: "subkept_", fused: "subfused_"}[p.form], prog.Name)
	p.define(name, prog, 1, p.form)
	args := p.args(in)
	cond, rest := args[0], args[2:]
	p.f("var v%d %s = %s;", i, p.vec(scalarTypes[in.DT], p.lanes), args[1])
	if p.lanes == 1 {
		p.open("if (%s) {", cond)
		p.f("v%d = %s(%s);", i, name, strings.Join(rest, ", "))
		p.end()
		return
	}
	p.open("if (any(%s)) {", cond)
	for l := range p.lanes {
		c := "xyzw"[l]
		at := make([]string, len(rest))
		for j, r := range rest {
			at[j] = fmt.Sprintf("(%s).%c", r, c)
		}
		p.open("if (%s.%c) {", cond, c)
		p.f("v%d.%c = %s(%s);", i, c, name, strings.Join(at, ", "))
		p.end()
	}
	p.end()
}
