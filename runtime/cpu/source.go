package cpu

import (
	"strings"

	"github.com/millrace-go/millrace/runtime"
)

// Source lists what a program runs as: the C of each variant that is compiled,
// and, as long as there is none, the primitives that tier 0 interprets.
func (d *device) Source(prog runtime.Program) []runtime.Variant {
	p, ok := prog.(*program)
	if !ok {
		return nil
	}
	var list []runtime.Variant
	scheds := []*schedule{p.sched}
	if s := p.thin.Load(); s != nil && s != p.sched {
		scheds = append(scheds, s)
	}
	for _, s := range scheds {
		variants := s.variants.Load()
		if variants == nil {
			continue
		}
		for _, v := range *variants {
			if v.code.Load() == nil {
				continue
			}
			if text, err := d.comp.source(v); err == nil {
				list = append(list, runtime.Variant{Tier: "tier 1, C", Class: v.classes(), Source: text})
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
	return []runtime.Variant{{Tier: "tier 0, interpreted", Class: "any layout", Source: text}}
}

// classes are the letters of a variant's phases.
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
