package cpu

import "github.com/millrace-go/millrace/runtime"

// Source lists what a program runs as: the C of each variant that is compiled,
// and, as long as there is none, the primitives that tier 0 interprets.
func (d *device) Source(prog runtime.Program) []runtime.Variant {
	p, ok := prog.(*program)
	if !ok {
		return nil
	}
	var list []runtime.Variant
	if variants := p.variants.Load(); variants != nil {
		for _, v := range *variants {
			if v.entry() == nil {
				continue
			}
			if text, err := d.comp.source(v); err == nil {
				class := v.key.variant(len(p.kernel.Operands)).String()
				list = append(list, runtime.Variant{Tier: "tier 1, C", Class: class, Source: text})
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	lowered, err := p.lowered()
	if err != nil {
		return nil
	}
	return []runtime.Variant{{Tier: "tier 0, interpreted", Class: "any layout", Source: lowered.String()}}
}
