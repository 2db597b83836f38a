package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Shader compilers may evaluate a float expression as if it were algebra. Mesa turns (a + b) - a
// into b and joins products with a common factor. NVIDIA's compiler rounds a product and a sum
// once, and a fused multiply-add may round twice. Most expansions lose only a few units in the last
// place by that. A few depend on exact rounding, because their error terms would vanish. These are
// printed as functions, in a form that keeps every rounding.
type form uint8

const (
	plain  form = iota
	opaque      // each result is XORed with a run-time zero
	fused       // in addition a multiply-add has the bits of one rounding, except for ties
)

// functions are float32 ops that are printed as functions of their expansion.
var functions = map[ir.Op]form{
	ir.Sin:      opaque,
	ir.Cos:      opaque,
	ir.Tan:      opaque,
	ir.Sinh:     opaque, // p·s·s, in which s·s may be infinite
	ir.Cosh:     opaque,
	ir.Rem:      fused,
	ir.Pow:      fused,
	ir.FloorDiv: fused,
}

// AsFunction reports a float32 op that is printed as a function of its expansion.
func AsFunction(op ir.Op) bool {
	_, ok := functions[op]
	return ok
}

// exactly spells float32 primitives in the stricter forms.
var exactly = map[ir.Op][3]struct{ text, uses string }{
	ir.Add: {opaque: {"mr_keep($0 + $1)", "mr_keep"}, fused: {"mr_keep($0 + $1)", "mr_keep"}},
	ir.Sub: {opaque: {"mr_keep($0 - $1)", "mr_keep"}, fused: {"mr_keep($0 - $1)", "mr_keep"}},
	ir.Mul: {opaque: {"mr_keep($0 * $1)", "mr_keep"}, fused: {"mr_keep($0 * $1)", "mr_keep"}},
	// Both operands may be the same number, and x/x = 1 does not hold for all numbers.
	ir.FDiv: {opaque: {"$0 / mr_keep($1)", "mr_keep"}, fused: {"$0 / mr_keep($1)", "mr_keep"}},
	ir.FMA:  {opaque: {"mr_keep(mr_keep($0 * $1) + $2)", "mr_keep"}, fused: {"mr_fma($0, $1, $2)", "mr_fma"}},
}

// function prints an op's expansion as a function over the present lanes and returns its name.
func (p *printer) function(in ir.Instr, dts []ir.DType, f form) string {
	name := fmt.Sprintf("op_%v", in.Op)
	if p.lanes != p.v.Lanes {
		name = fmt.Sprintf("op1_%v", in.Op) // for a row value, beside points of several lanes
	}
	p.define(name, ir.Expansion(in.Op, in.DT, dts), p.lanes, f)
	return name
}

// define prints a scalar program as a function, once.
func (p *printer) define(name string, prog *ir.Prog, lanes int, f form) {
	if p.made[name] || p.err != nil {
		return
	}
	p.made[name] = true
	q := &printer{
		Dialect: p.Dialect, k: p.k, v: p.v, slots: p.slots, code: prog.Code, lanes: lanes, form: f, indent: 1,
		out: new(strings.Builder), global: p.global, made: p.made, uses: p.uses, single: p.single, wide: p.wide,
	}
	one := lanes == 1 && p.v.Lanes > 1
	if one {
		q.uses, q.wide = p.single, new(bool)
	}
	params := make([]string, len(prog.Params))
	for i, d := range prog.Params {
		params[i] = fmt.Sprintf("x%d %s", i, p.vec(scalarTypes[d], lanes))
	}
	q.body()
	if q.err == nil && one && *q.wide {
		q.fail("64-bit values in %s: %w", prog.Name, ir.ErrUnsupported)
	}
	if q.err != nil {
		p.err = q.err
		return
	}
	body := q.out.String()
	if one {
		body = forOneLane(body)
	}
	res := prog.Results[0]
	head := p.line(fmt.Sprintf("func %s(%s) %s {", name, strings.Join(params, ", "), p.vec(scalarTypes[prog.Code[res].DT], lanes)), lanes)
	fmt.Fprintf(p.global, "\n%s\n%s\treturn %s;\n}\n", head, body, q.value(res))
}

// forOneLane renames the helpers in a text. A shader over several lanes has a second copy, for one
// lane, of the helpers that its one-lane functions call.
func forOneLane(text string) string { return strings.ReplaceAll(text, "mr_", "m1_") }

// identifier makes an identifier from a name of the registries.
func identifier(prefix, name string) string {
	return prefix + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
