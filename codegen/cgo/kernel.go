package cgo

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// printer holds one kernel that is being printed.
//
// There are two kinds of values. Uniform values depend on constants and scalars only: they are
// computed once, as C scalars u0, u1, …, and spread to vectors b0, b1, … for vector statements. The
// others are vectors x0, x1, … computed in every step of the innermost loop.
type printer struct {
	k       *codegen.Kernel
	v       Variant
	lanes   int
	uniform []bool
	spread  []bool // uniform values that vector statements use
	help    *helpers
	vec     speller
	scalar  speller
	vals    []operand // vector form of every value
	out     strings.Builder
}

// sort finds the uniform values, and those of them that vectors need.
func (p *printer) sort() {
	p.uniform = make([]bool, len(p.k.Body))
	p.spread = make([]bool, len(p.k.Body))
	for i, in := range p.k.Body {
		switch in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
			continue
		}
		p.uniform[i] = true
		for _, r := range in.Args {
			if r != ir.None && !p.uniform[r] {
				p.uniform[i] = false
			}
		}
	}
	for i, in := range p.k.Body {
		for _, r := range in.Args {
			if r != ir.None && p.uniform[r] && !p.uniform[i] {
				p.spread[r] = true
			}
		}
	}
	for _, s := range p.k.Stores {
		p.spread[s.Value] = p.uniform[s.Value]
	}
	for _, r := range p.k.Reduces {
		p.spread[r.Value] = p.uniform[r.Value]
	}
}

// width is the bytes of the widest value in a vector statement.
func (p *printer) width() int {
	w := 4
	for i, in := range p.k.Body {
		if !p.uniform[i] || p.spread[i] {
			w = max(w, ctypes[in.DT].size)
		}
	}
	return w
}

func (p *printer) anyOutput(classes ...codegen.AccessClass) bool {
	for i, o := range p.k.Operands {
		for _, c := range classes {
			if o.Kind == codegen.Output && p.v.Class[i] == c {
				return true
			}
		}
	}
	return false
}

func (p *printer) linef(indent int, format string, args ...any) {
	p.out.WriteString(strings.Repeat("\t", indent))
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

func (p *printer) print(name string) error {
	p.linef(0, "void %s(const mr_args *a, mr_i64 begin, mr_i64 end)\n{", name)
	p.linef(1, "const mr_i64 rank = a->rank, inner = a->dims[rank - 1];")
	p.linef(1, "mr_i64 at[MR_MAX_RANK], left = end - begin;")
	for i, r := range p.k.Reduces {
		t := ctypes[p.k.Body[r.Value].DT].elem
		p.linef(1, "%s *r%d = (%s *)a->bufs[%d];", t, i, t, i)
	}
	if err := p.uniforms(); err != nil {
		return err
	}
	p.linef(1, "mr_i64 from[%d]; /* where a row of each operand begins */", len(p.k.Operands))
	p.linef(1, "locate(a, begin, at);")
	p.linef(1, "starts(a, at, from, %d);", len(p.k.Operands))
	p.linef(1, "while (left > 0) {")
	p.linef(2, "mr_i64 n = inner - at[rank - 1];")
	p.linef(2, "if (n > left)\n\t\t\tn = left;")
	p.linef(2, "left -= n;")
	if err := p.row(); err != nil {
		return err
	}
	p.linef(2, "if (left > 0)\n\t\t\tadvance(a, at, from, %d);", len(p.k.Operands))
	p.linef(1, "}\n}")
	return p.help.err
}

// uniforms prints the values that are computed once per call.
func (p *printer) uniforms() error {
	vals := make([]operand, len(p.k.Body))
	p.vals = make([]operand, len(p.k.Body))
	needed := p.neededScalars()
	for i, in := range p.k.Body {
		if !p.uniform[i] {
			continue
		}
		expr := ""
		switch in.Op {
		case ir.Const:
			expr = p.help.literal(in.DT, in.Imm)
		case ir.Scalar:
			expr = p.scalarArg(in)
		default:
			o, err := p.scalar.spell(in, operands(in, vals))
			if err != nil {
				return err
			}
			expr = o.expr
		}
		vals[i] = operand{fmt.Sprintf("u%d", i), in.DT, 4}
		if needed[i] {
			p.linef(1, "const %s u%d = %s;", p.scalar.typ(in.DT), i, expr)
			expr = vals[i].expr
		}
		if p.spread[i] {
			p.linef(1, "const %s b%d = %s;", p.vec.typ(in.DT), i, p.vec.splat(in.DT, expr))
			p.vals[i] = operand{fmt.Sprintf("b%d", i), in.DT, 4}
		}
	}
	return nil
}

// neededScalars reports the uniform values that other uniform values use.
func (p *printer) neededScalars() []bool {
	needed := make([]bool, len(p.k.Body))
	for i, in := range p.k.Body {
		for _, r := range in.Args {
			if r != ir.None && p.uniform[i] {
				needed[r] = true
			}
		}
	}
	return needed
}

// scalarArg reads a run-time scalar.
func (p *printer) scalarArg(in ir.Instr) string {
	x := fmt.Sprintf("a->scalars[%d]", in.Imm)
	switch {
	case in.DT == ir.Bool:
		return fmt.Sprintf("-(s_i32)(%s != 0)", x)
	case floating(in.DT):
		return p.help.call("bits", false, in.DT, fmt.Sprintf("(s_%s)%s", short(unsignedOf(in.DT)), x))
	}
	if elem, ok := narrow(in.DT); ok {
		x = "(mr_" + elem + ")" + x
	}
	return fmt.Sprintf("(s_%s)%s", short(in.DT), x)
}

// unroll is the number of vectors per step of the main loop. Interleaved vectors keep more units of
// a core busy than it finds work for by itself. Long bodies do not need this, and would only
// compile more slowly.
func (p *printer) unroll() int {
	n := 0
	for i := range p.k.Body {
		if !p.uniform[i] {
			n++
		}
	}
	switch {
	case n <= 64:
		return 4
	case n <= 160:
		return 2
	}
	return 1
}

// place is the place of a vector in a step.
type place struct {
	letter string // of its values' names
	offset string // of its first element in the row
}

// body prints the statements of a step of n vectors, value by value.
func (p *printer) body(indent, n int) error {
	places := make([]place, n)
	for u := range places {
		places[u] = place{"xyjk"[u : u+1], "i"}
		if u > 0 {
			places[u].offset = fmt.Sprintf("(i + %d)", u*p.lanes)
		}
	}
	vals := make([][]operand, n)
	for u := range vals {
		vals[u] = append([]operand(nil), p.vals...)
	}
	need := p.needed()
	for i, in := range p.k.Body {
		if p.uniform[i] || !need[i] {
			continue
		}
		if in.Op == ir.Load && p.v.Class[in.Imm] == codegen.Splat {
			for u := range vals {
				vals[u][i] = operand{fmt.Sprintf("l%d", in.Imm), in.DT, 4}
			}
			continue
		}
		for u, at := range places {
			v, err := p.value(in, vals[u], at)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s%d", at.letter, i)
			p.linef(indent, "const %s %s = %s;", p.vec.held(in.DT, v.width), name, v.expr)
			vals[u][i] = operand{name, in.DT, v.width}
		}
	}
	for u, at := range places {
		for i, r := range p.k.Reduces {
			p.linef(indent, "%s", p.help.store(vals[u][r.Value], fmt.Sprintf("r%d + %s", i, at.offset)))
		}
		for _, s := range p.k.Stores {
			p.storeStep(indent, s.Operand, vals[u][s.Value], at.offset)
		}
	}
	return nil
}

// value is the expression of one instruction for one vector.
func (p *printer) value(in ir.Instr, vals []operand, at place) (operand, error) {
	switch in.Op {
	case ir.LoadAt:
		return p.indexedStep(in, vals, at.offset), nil
	case ir.Load:
		if in.Args[0] != ir.None {
			return p.guardedStep(in, vals, at.offset), nil
		}
		return operand{p.loadStep(int(in.Imm), in.DT, at.offset), in.DT, 4}, nil
	case ir.IndexLo, ir.IndexHi:
		return operand{p.indexStep(in, at.offset), in.DT, 4}, nil
	}
	if name, a, b := p.extremum(in); name != "" {
		return operand{p.help.call(name, true, in.DT, vals[a].expr, vals[b].expr), in.DT, 4}, nil
	}
	return p.vec.spell(in, operands(in, vals))
}
