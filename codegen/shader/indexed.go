package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Loads through an index test every lane's index. An index out of range is replaced by 0, so that
// nothing outside is read; the mode decides about the result. If such an index is a fault, the
// invocation reports it in two words of the faults binding: see [FaultWords].

// FaultWords is the number of words in the faults binding for an operand whose indices may be
// faults: whether there was a fault, and the least such index in the form that [FaultIndex] reads.
// Both are 0 before the run. The words of operands follow one pair, whose first word tells whether any
// of them had a fault.
const FaultWords = 2

// FaultIndex is the least index out of range, from the word in which a shader reported it.
func FaultIndex(word uint32) int64 { return int64(int32(word ^ 0x7fffffff)) }

// faultsName is the name of the faults binding in shaders.
const faultsName = "faults"

// Indexed marks the operands that k reads through an index, and the operand into which it scatters.
// If an index may be a fault, it adds the faults binding, which follows all other bindings.
func (v *Variant) Indexed(k *codegen.Kernel) {
	for _, in := range k.Body {
		var a *Arg
		switch in.Op {
		case ir.LoadAt:
			a = &v.Args[uint32(in.Imm)]
		case ir.Scatter:
			a = &v.Args[k.Stores[0].Operand]
		default:
			continue
		}
		a.Indexed = true
		a.Fault = a.Fault || codegen.ModeOf(in) == ir.IndexError
	}
	if v.Faults() > 0 {
		v.Bindings = append(v.Bindings, Binding{Write: true, Faults: true})
	}
}

// Faults is the number of operands that have words in the faults binding.
func (v *Variant) Faults() int {
	n := 0
	for i := range v.Args {
		if v.Args[i].Fault {
			n++
		}
	}
	return n
}

// FaultWord is the run-time word with the number of operands of earlier dispatches in the faults
// binding, which precede those of this dispatch.
func (v *Variant) FaultWord(k *codegen.Kernel) int { return v.slots(k).fault }

// EvenIndex reports that all lanes of a vector read operand o at the same index: whole rows of a
// table are then looked up, by whole vectors.
func EvenIndex(k *codegen.Kernel, v *Variant, o int) bool {
	even := make([]bool, len(k.Body))
	level := k.Levels()
	for i, in := range k.Body {
		even[i] = true
		if level[i] != codegen.Point {
			continue
		}
		if at, ok := operandOf(in); ok {
			even[i] = v.Args[at].Class == codegen.Splat
		}
		for _, a := range in.Args {
			even[i] = even[i] && (a == ir.None || even[a])
		}
		if in.Op == ir.LoadAt && int(uint32(in.Imm)) == o && !even[in.Args[0]] {
			return false
		}
	}
	return true
}

// loadAt writes a load through an index.
func (p *printer) loadAt(i int, in ir.Instr) {
	k, mode := int(uint32(in.Imm)), codegen.ModeOf(in)
	a, s := p.v.Args[k], p.slots.args[k]
	if p.code[in.Args[0]].DT != ir.Int32 {
		p.fail("an index of %v: %w", p.code[in.Args[0]].DT, ir.ErrUnsupported)
		return
	}
	lanes := p.lanes
	if a.Vec {
		lanes = 1
	}
	index := p.value(in.Args[0])
	if lanes < p.lanes {
		index = fmt.Sprintf("(%s).x", index)
	}
	size := p.splat(runWord(s.size), "u32", lanes)
	x, ok := fmt.Sprintf("x%dat", i), fmt.Sprintf("x%din", i)
	if mode == ir.IndexClamp {
		p.over(lanes, "let %s $I = min(max(%s, $I(0)), $bits($I, %s) - $I(1));", x, index, size)
	} else {
		p.over(lanes, "let %s $I = %s;", x, index)
		p.over(lanes, "let %s $B = $lt($bits($U, %s), %s);", ok, x, size)
	}
	guard := ""
	if in.Args[1] != ir.None {
		guard = p.value(in.Args[1])
	}
	if mode == ir.IndexError {
		p.tellFault(k, x, ok, guard, lanes)
	}
	at := x
	if mode != ir.IndexClamp {
		at = p.call("select", lanes, p.splat("0", "i32", lanes), x, ok)
	}
	base := p.position(k)
	if lanes > 1 && !p.spread(k) {
		base = p.splat(base, "u32", lanes)
	}
	pos := fmt.Sprintf("x%dto", i)
	p.over(lanes, "let %s $U = %s + $bits($U, %s) * %s;", pos, base, at, p.splat(runWord(s.step), "u32", lanes))
	text := p.loadFrom(k, in.DT, pos, lanes > 1)
	if mode != ir.IndexClamp {
		if lanes < p.lanes {
			ok = p.splat(ok, "bool", p.lanes)
		}
		if guard != "" {
			ok = p.call("and", p.lanes, ok, guard)
		}
	} else {
		ok = guard
	}
	if ok != "" {
		text = p.call("select", p.lanes, p.literal(in.DT, 0, p.lanes), text, ok)
	}
	p.let(p.vals[i], in.DT, text)
}

// over is f for another number of lanes than p's.
func (p *printer) over(lanes int, format string, args ...any) {
	was := p.lanes
	p.lanes = lanes
	p.f(format, args...)
	p.lanes = was
}

// tellFault writes the report of indices that are a fault, over lanes. Lanes of a last vector that
// are past the end do not report.
func (p *printer) tellFault(k int, x, ok, guard string, lanes int) {
	p.use("mr_fault")
	slot := runWord(p.slots.fault)
	for _, a := range p.v.Args[:k] {
		if a.Fault {
			slot += " + 1u"
		}
	}
	call := func(index string) string { return fmt.Sprintf("mr_fault(%s, %s);", slot, index) }
	if lanes == 1 {
		cond := "!" + ok
		switch {
		case guard != "" && p.lanes > 1:
			cond += fmt.Sprintf(" && any(%s)", guard)
		case guard != "":
			cond += " && " + guard
		}
		p.open("if (%s) {", cond)
		p.f("%s", call(x))
		p.end()
		return
	}
	p.open("if (!all(%s)) {", ok)
	for l := range lanes {
		c := "xyzw"[l]
		cond := fmt.Sprintf("!%s.%c", ok, c)
		if guard != "" {
			cond += fmt.Sprintf(" && (%s).%c", guard, c)
		}
		if p.v.Mode == Map {
			cond += fmt.Sprintf(" && c%d * %du + %du < %s", p.v.Rank-1, lanes, l, runWord(wordInner))
		}
		p.open("if (%s) {", cond)
		p.f("%s", call(fmt.Sprintf("%s.%c", x, c)))
		p.end()
	}
	p.end()
}

// element is the expression for the memory of operand k at a position. An operand with several
// bindings is read by a function that finds the right one.
func (p *printer) element(k int, pos string) string {
	a := p.v.Args[k]
	if a.Parts < 2 {
		return fmt.Sprintf("b%d[%s]", a.Binding, pos)
	}
	name := fmt.Sprintf("far_%d", k)
	if !p.made[name] {
		p.made[name] = true
		var b strings.Builder
		lanes := 1
		if a.Vec {
			lanes = p.v.Lanes
		}
		typ := p.vec(p.v.Bindings[a.Binding].word(), lanes)
		fmt.Fprintf(&b, "func %s(at $u32) %s {\n", name, typ)
		for i := range a.Parts - 1 {
			end := uint32(i+1) * a.Part
			fmt.Fprintf(&b, "\tif (at < %s) {\n\t\treturn b%d[at - %s];\n\t}\n", word(end), a.Binding+i, word(end-a.Part))
		}
		fmt.Fprintf(&b, "\treturn b%d[at - %s];\n}\n", a.Binding+a.Parts-1, word(uint32(a.Parts-1)*a.Part))
		p.global.WriteString("\n" + p.block(b.String(), 1))
	}
	return fmt.Sprintf("%s(%s)", name, pos)
}
