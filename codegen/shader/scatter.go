package shader

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A scatter takes two shaders over one kernel. Checks has one invocation per point of the domain:
// it computes the indices, reports those that are a fault, and writes nothing. Scatters has one
// invocation per row, which goes over the row in order, so the result does not depend on how many
// run at once. It writes nothing if its fault words report a fault. Neither shader reads the
// operand into which the kernel scatters: the output already has its contents.

// MayFault reports a kernel that fails if an index is out of range, in a load or a scatter.
func MayFault(k *codegen.Kernel) bool {
	at := k.Scatter()
	return k.MayFault() || at != ir.None && codegen.ModeOf(k.Body[at]) == ir.IndexError
}

// checkMain prints a Checks shader. It also checks loads through an index that may be a fault,
// because these faults, too, must be known before the first write.
func (p *printer) checkMain() {
	at := p.k.Scatter()
	if at == ir.None {
		p.fail("checks of no scatter: %w", ir.ErrUnsupported)
		return
	}
	in := p.k.Body[at]
	need := make([]bool, len(p.code))
	need[in.Args[0]] = true
	for i := len(p.code) - 1; i >= 0; i-- {
		x := p.code[i]
		need[i] = need[i] || x.Op == ir.LoadAt && codegen.ModeOf(x) == ir.IndexError
		for _, a := range x.Args {
			if need[i] && a != ir.None {
				need[a] = true
			}
		}
	}
	p.begin(false)
	p.coords("i", 0, p.v.Rank)
	p.vals = make([]string, len(p.code))
	for i := range p.code {
		if need[i] {
			p.instr(i)
		}
	}
	if to := p.k.Stores[0].Operand; codegen.ModeOf(in) == ir.IndexError {
		p.target(in, to)
		p.tellFault(to, "at_index", "at_inside", "", 1)
	}
	p.end()
}

// scatterMain prints a Scatters shader.
func (p *printer) scatterMain() {
	at := p.k.Scatter()
	if at == ir.None {
		p.fail("no scatter: %w", ir.ErrUnsupported)
		return
	}
	in, to := p.k.Body[at], p.k.Stores[0].Operand
	p.begin(false)
	for n := range p.v.Faults() {
		p.open("if ($load(%s[(%s + %du) * %du]) != 0u) {", faultsName, runWord(p.slots.fault), n, FaultWords)
		p.f("return;")
		p.end()
	}
	p.coords("i", 0, p.v.Kept)
	p.rows = planRows(p.k, false)
	p.vals = make([]string, len(p.code))
	row := ""
	p.once(func(q *printer) {
		for i := range q.code {
			if i != int(at) && p.rows.level[i] != codegen.Point {
				q.instr(i)
			}
		}
		row = q.position(to)
	})
	p.loop("at", "0u", runWord(wordSteps), "1u")
	p.coords("at", p.v.Kept, p.v.Rank)
	for i := range p.code {
		if i != int(at) && p.rows.level[i] == codegen.Point {
			p.instr(i)
		}
	}
	inside := p.target(in, to)
	if inside {
		p.open("if (at_inside) {")
	}
	p.f("let place $u32 = %s + $bits($u32, at_index) * %s;", row, runWord(p.slots.args[to].step))
	value := p.value(in.Args[1])
	if op := codegen.CombineOf(in).Op(); op != ir.OpInvalid {
		value = fmt.Sprintf("%s(%s, %s)", p.joins(op, in.DT), p.loadFrom(to, in.DT, "place", false), value)
	}
	a := p.v.Args[to]
	p.f("b%d[place] = %s;", a.Binding, p.toMemory(value, in.DT, p.v.Bindings[a.Binding], 1))
	if inside {
		p.end()
	}
	p.end()
	p.end()
}

// target writes at_index, the element that an index names. If the index may be outside of the row,
// it also writes at_inside, which says whether it is inside.
func (p *printer) target(in ir.Instr, to int) (inside bool) {
	if dt := p.code[in.Args[0]].DT; dt != ir.Int32 {
		p.fail("an index of %v: %w", dt, ir.ErrUnsupported)
		return false
	}
	index, size := p.value(in.Args[0]), runWord(p.slots.args[to].size)
	if codegen.ModeOf(in) == ir.IndexClamp {
		p.f("let at_index $i32 = min(max(%s, 0), $bits($i32, %s) - 1);", index, size)
		return false
	}
	p.f("let at_index $i32 = %s;", index)
	p.f("let at_inside $bool = $bits($u32, at_index) < %s;", size)
	return true
}

// joins is the function that combines an element with a value scattered to it.
func (p *printer) joins(op ir.Op, dt ir.DType) string {
	name := "joins"
	k, err := Prepare(&codegen.Kernel{
		Operands: []codegen.Operand{{DT: dt}, {DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body: []ir.Instr{
			{Op: ir.Load, DT: dt, Imm: 0, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}},
			{Op: ir.Load, DT: dt, Imm: 1, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}},
			{Op: op, DT: dt, Args: [4]ir.Ref{0, 1, ir.None, ir.None}},
		},
		Stores: []codegen.Store{{Operand: 2, Value: 2}},
	})
	if err != nil {
		p.fail("%w", err)
		return name
	}
	for i := range k.Body {
		if k.Body[i].Op == ir.Load {
			k.Body[i].Op = ir.Param
		}
	}
	p.define(name, &ir.Prog{Name: op.String(), Params: []ir.DType{dt, dt}, Code: k.Body, Results: []ir.Ref{k.Stores[0].Value}}, 1, plain)
	return name
}
