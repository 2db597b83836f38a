package cpu

import (
	"strings"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
)

// Source lists the code that a program runs: the text of each compiled variant, or, if there is
// none yet, the primitives that tier 0 interprets.
func (d *device) Source(prog runtime.Program) []runtime.Variant {
	p, ok := prog.(*program)
	if !ok {
		return nil
	}
	var list []runtime.Variant
	for _, s := range p.schedules() {
		for _, v := range s.known() {
			code := v.code.Load()
			if code == nil {
				continue
			}
			if text, err := v.source(code); err == nil {
				list = append(list, runtime.Variant{Tier: code.tier(), Class: v.classes(), Source: text})
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	lowered, err := p.sched.lowered()
	if err != nil {
		return nil
	}
	text := lowered.Phases[0].Kernel.String()
	if len(lowered.Phases) > 1 {
		text = lowered.String()
	}
	tier := "tier 0, interpreted"
	if p.parts != nil && len(p.kernel.Body) == bareProduct {
		tier = "product, built in" // there is nothing else to compile
	}
	return []runtime.Variant{{Tier: tier, Class: "any layout", Source: text}}
}

// Interpreted returns how many launches of a program the interpreter ran.
func (d *device) Interpreted(prog runtime.Program) int64 {
	if p, ok := prog.(*program); ok {
		return p.interpreted.Load()
	}
	return 0
}

// bareProduct is the number of instructions of a contraction of two unmodified operands: two loads
// and the contraction.
const bareProduct = 3

// source returns the text of a variant's code.
func (v *variant) source(code *compiled) (string, error) {
	if !code.c {
		text := ""
		for _, e := range code.evaluators {
			text += e.(*machinePhase).text()
		}
		return text, nil
	}
	units, _, err := v.units()
	if err != nil {
		return "", err
	}
	return cgo.PrintUnits(units, ccode.ISA())
}

// tier describes the origin of code.
func (c *compiled) tier() string {
	if !c.c {
		return "tier 1, machine code for " + machine.Level().String()
	}
	return "tier 1, C"
}

// classes returns the class letters of a variant's phases.
func (v *variant) classes() string {
	units, _, err := v.units()
	if err != nil {
		return ""
	}
	var s []string
	for _, u := range units {
		s = append(s, u.Variant.String())
	}
	return strings.Join(s, " ")
}
