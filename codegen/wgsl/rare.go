package wgsl

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// lookup indexes a table by a private array, once per lane.
func (p *printer) lookup(in ir.Instr, index string, lanes int) string {
	t := ir.TableByID(in.Imm)
	if t == nil || isWide(t.DT) || scalarTypes[t.DT] == "" {
		p.fail("table %d: %w", in.Imm, ir.ErrUnsupported)
		return index
	}
	name := fmt.Sprintf("t%d", in.Imm)
	if !strings.Contains(p.global.String(), " "+name+" ") {
		entries := make([]string, len(t.Bits))
		for i, b := range t.Bits {
			entries[i] = scalarLiteral(t.DT, b)
		}
		typ := fmt.Sprintf("array<%s, %d>", scalarTypes[t.DT], len(entries))
		fmt.Fprintf(p.global, "\nvar<private> %s : %s = %s(%s);\n", name, typ, typ, strings.Join(entries, ", "))
	}
	if lanes == 1 {
		return fmt.Sprintf("%s[%s]", name, index)
	}
	at := make([]string, lanes)
	for i := range at {
		at[i] = fmt.Sprintf("%s[(%s).%c]", name, index, "xyzw"[i])
	}
	return fmt.Sprintf("%s(%s)", vec(scalarTypes[t.DT], lanes), strings.Join(at, ", "))
}

// rare writes the slow path as a scalar function, called for the lanes that
// want it only where some lane does.
func (p *printer) rare(i int, in ir.Instr) {
	fn := p.sub(in)
	if p.err != nil {
		return
	}
	lanes := p.v.Lanes
	args := p.args(in)
	cond, rest := args[0], args[2:]
	p.f("var v%d = %s;", i, args[1])
	if lanes == 1 {
		p.f("if (%s) {", cond)
		p.f("\tv%d = %s(%s);", i, fn, strings.Join(rest, ", "))
		p.f("}")
		return
	}
	p.f("if (any(%s)) {", cond)
	for l := range lanes {
		c := "xyzw"[l]
		at := make([]string, len(rest))
		for j, r := range rest {
			at[j] = fmt.Sprintf("(%s).%c", r, c)
		}
		p.f("\tif (%s.%c) {", cond, c)
		p.f("\t\tv%d.%c = %s(%s);", i, c, fn, strings.Join(at, ", "))
		p.f("\t}")
	}
	p.f("}")
}

// sub prints a sub-program as a function of one lane and returns its name.
func (p *printer) sub(in ir.Instr) string {
	prog := ir.SubByID(in.Imm)
	name := fmt.Sprintf("s%d", in.Imm)
	if prog == nil {
		p.fail("no sub-program %d", in.Imm)
		return name
	}
	if strings.Contains(p.global.String(), "fn "+name+"(") {
		return name
	}
	// The helpers are printed over the shader's lanes, so a scalar function
	// that needs them fits scalar shaders only.
	q := &printer{k: p.k, v: &Variant{Lanes: 1}, global: p.global, uses: map[string]bool{}, indent: 1}
	vals := make([]string, len(prog.Code))
	params := make([]string, len(prog.Params))
	for i, d := range prog.Params {
		params[i] = fmt.Sprintf("a%d : %s", i, scalarTypes[d])
		if scalarTypes[d] == "" || isWide(d) {
			q.fail("sub-program %s: %w", prog.Name, ir.ErrUnsupported)
		}
	}
	for i, c := range prog.Code {
		vals[i] = fmt.Sprintf("v%d", i)
		var args []string
		var dts []ir.DType
		for _, a := range c.Args {
			if a != ir.None {
				args, dts = append(args, vals[a]), append(dts, prog.Code[a].DT)
			}
		}
		switch {
		case c.Op == ir.Param:
			vals[i] = fmt.Sprintf("a%d", c.Imm)
		case c.Op == ir.Const:
			vals[i] = literal(c.DT, c.Imm, 1)
		case c.Op == ir.Rare || isWide(c.DT) || scalarTypes[c.DT] == "":
			q.fail("%v of %v in sub-program %s: %w", c.Op, c.DT, prog.Name, ir.ErrUnsupported)
		default:
			q.f("let %s = %s;", vals[i], q.spell(c, args, dts, 1))
		}
	}
	if len(q.uses) > 0 && p.v.Lanes > 1 {
		q.fail("helpers in sub-program %s: %w", prog.Name, ir.ErrUnsupported)
	}
	if q.err != nil {
		p.err = q.err
		return name
	}
	for u := range q.uses {
		p.uses[u] = true
	}
	res := prog.Results[0]
	fmt.Fprintf(p.global, "\nfn %s(%s) -> %s {\n%s\treturn %s;\n}\n",
		name, strings.Join(params, ", "), scalarTypes[prog.Code[res].DT], q.out.String(), vals[res])
	return name
}
