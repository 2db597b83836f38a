package cgo

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
)

// Unit is one function of a text: a lowered kernel under a name, and what may
// be relied on.
type Unit struct {
	Name string
	*codegen.Kernel
	Variant
}

// Print writes a lowered kernel as C: the ABI, then one function of type
// mr_eval with the name given. The text is a function of the arguments alone.
func Print(name string, k *codegen.Kernel, v Variant, isa *ISA) (string, error) {
	return PrintUnits([]Unit{{name, k, v}}, isa)
}

// PrintUnits is Print for several kernels in one text, such as the phases of
// one: what they have in common is there once. The widest value of any of them
// sets the number of lanes.
func PrintUnits(units []Unit, isa *ISA) (string, error) {
	printers := make([]*printer, len(units))
	width, staged, guarded, faults := 0, false, false, false
	for i, u := range units {
		if len(u.Class) != len(u.Operands) {
			return "", fmt.Errorf("codegen/cgo: %d classes for %d operands", len(u.Class), len(u.Operands))
		}
		p := &printer{k: u.Kernel, v: u.Variant}
		faults = p.viaLanes() || faults
		p.sort()
		printers[i] = p
		width = max(width, p.width())
		for _, c := range p.v.Class {
			staged = staged || c == codegen.Staged
		}
		guarded = guarded || u.Guarded || p.anyOutput(codegen.Splat, codegen.Staged)
	}
	lanes := isa.lanes(width)
	help := newHelpers(lanes)
	bodies := ""
	for i, p := range printers {
		p.lanes, p.help = lanes, help
		p.vec = speller{vec: true, help: help}
		p.scalar = speller{help: help}
		if err := p.print(units[i].Name); err != nil {
			return "", err
		}
		if i > 0 {
			bodies += "\n"
		}
		bodies += p.out.String()
	}
	head := ABI + "\n" + vectorTypes(lanes) + walkText
	if staged {
		head += stageText
	}
	if guarded {
		head += guardText
	}
	if faults {
		head += faultText
	}
	return head + "\n" + help.text.String() + bodies, nil
}
