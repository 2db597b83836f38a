package cgo

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// lookup defines a table and the function that reads it, and returns the function's name. Indices
// are in range where the result is used. In other lanes they may have any value, so they are
// clamped.
func (h *helpers) lookup(vec bool, id uint64, dt ir.DType) string {
	t := ir.TableByID(id)
	if t == nil || len(t.Bits) == 0 {
		h.err = fmt.Errorf("codegen/cgo: no table %d", id)
		return "0"
	}
	table := fmt.Sprintf("table_%d", id)
	h.define(table, func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "static const s_%s %s[%d] = {\n", short(dt), table, len(t.Bits))
		for _, bits := range t.Bits {
			fmt.Fprintf(&b, "\t%s,\n", literal(dt, bits))
		}
		b.WriteString("};\n\n")
		return b.String()
	})
	at := fmt.Sprintf("at_%d", len(t.Bits))
	h.define(at, func() string {
		expr := fmt.Sprintf("(mr_u32)i < %du ? i : 0", len(t.Bits))
		if n := len(t.Bits); n&(n-1) == 0 {
			expr = fmt.Sprintf("i & %d", n-1)
		}
		return fmt.Sprintf("%ss_i32 %s(s_i32 i) { return %s; }\n\n", inline, at, expr)
	})
	mode := "s"
	if vec {
		mode = "v"
	}
	name := fmt.Sprintf("lookup_%s_%d", mode, id)
	h.define(name, func() string {
		head := fmt.Sprintf("%s%s_%s %s(%s_i32 i)\n{\n", inline, mode, short(dt), name, mode)
		if !vec {
			return head + fmt.Sprintf("\treturn %s[%s(i)];\n}\n\n", table, at)
		}
		return head + "\t" + list(dt, h.lanes, table+"["+at+"(i[$])]") + "\n}\n\n"
	})
	return name
}

// sub defines a sub-program as a scalar function and returns its name.
func (h *helpers) sub(id uint64) string {
	p := ir.SubByID(id)
	if p == nil {
		h.err = fmt.Errorf("codegen/cgo: no sub-program %d", id)
		return "0"
	}
	name := fmt.Sprintf("sub_%d", id)
	h.define(name, func() string {
		text, err := h.scalarFunc(name, p)
		if err != nil && h.err == nil {
			h.err = err
		}
		return text
	})
	return name
}

// scalarFunc is a Prog with one result as a function of its parameters. It is not inlined, because
// few values need it.
func (h *helpers) scalarFunc(name string, p *ir.Prog) (string, error) {
	if len(p.Results) != 1 {
		return "", fmt.Errorf("codegen/cgo: sub-program %s has %d results", p.Name, len(p.Results))
	}
	s := speller{help: h}
	var b strings.Builder
	var params []string
	for i, dt := range p.Params {
		params = append(params, fmt.Sprintf("%s a%d", s.typ(dt), i))
	}
	out := p.Results[0]
	fmt.Fprintf(&b, "static __attribute__((noinline)) %s %s(%s)\n{\n", s.typ(p.Code[out].DT), name, strings.Join(params, ", "))
	vals := make([]operand, len(p.Code))
	for i, in := range p.Code {
		expr := ""
		switch in.Op {
		case ir.Param:
			vals[i] = operand{fmt.Sprintf("a%d", in.Imm), in.DT, 4}
			continue
		case ir.Const:
			expr = h.literal(in.DT, in.Imm)
		default:
			v, err := s.spell(in, operands(in, vals))
			if err != nil {
				return "", err
			}
			expr = v.expr
		}
		vals[i] = operand{fmt.Sprintf("x%d", i), in.DT, 4}
		fmt.Fprintf(&b, "\tconst %s x%d = %s;\n", s.typ(in.DT), i, expr)
	}
	fmt.Fprintf(&b, "\treturn %s;\n}\n\n", vals[out].expr)
	return b.String(), nil
}

// literal is a literal whose helpers are defined.
func (h *helpers) literal(dt ir.DType, bits uint64) string {
	t := literal(dt, bits)
	if strings.HasPrefix(t, "bits_s_") {
		h.call("bits", false, dt)
	}
	return t
}

// operands are the values of an instruction's operands.
func operands(in ir.Instr, vals []operand) []operand {
	var a []operand
	for _, r := range in.Args {
		if r != ir.None {
			a = append(a, vals[r])
		}
	}
	return a
}

// rare writes the slow path of a few lanes: a test of all lanes, and a function, not inlined, that
// recomputes the lanes that need it one by one.
func (h *helpers) rare(s *speller, in ir.Instr, a []operand) string {
	sub := h.sub(in.Imm)
	var args []string
	for _, o := range a[2:] {
		args = append(args, o.expr)
	}
	if !s.vec {
		return fmt.Sprintf("%s ? %s(%s) : %s", a[0].expr, sub, strings.Join(args, ", "), a[1].expr)
	}
	name := fmt.Sprintf("rare_%d", in.Imm)
	width := maskWidth(ir.Instr{Op: ir.Rare}, a[:1])
	result := s.held(in.DT, a[1].width)
	for _, o := range a {
		if o.dt == ir.Bool {
			name += fmt.Sprintf("_%d", o.width)
		}
	}
	h.define(name, func() string {
		var b strings.Builder
		fmt.Fprintf(&b, "static __attribute__((noinline, cold)) %s %s(%s m, %s y", result, name, s.maskType(width), result)
		var lane []string
		for i, o := range a[2:] {
			fmt.Fprintf(&b, ", %s c%d", s.held(o.dt, o.width), i)
			lane = append(lane, fmt.Sprintf("(s_%s)c%d[l]", short(o.dt), i))
		}
		fmt.Fprintf(&b, ")\n{\n\tfor (int l = 0; l < %d; l++)\n\t\tif (m[l])\n\t\t\ty[l] = %s(%s);\n\treturn y;\n}\n\n", h.lanes, sub, strings.Join(lane, ", "))
		return b.String()
	})
	dt := ir.Int32
	if width == 8 {
		dt = ir.Int64
	}
	return fmt.Sprintf("__builtin_expect(%s, 0) ? %s(%s, %s, %s) : %s",
		h.call("any", true, dt, a[0].expr), name, a[0].expr, a[1].expr, strings.Join(args, ", "), a[1].expr)
}
