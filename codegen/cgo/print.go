package cgo

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Unit is one function of a text: a lowered kernel with a name and a variant.
type Unit struct {
	Name string
	*codegen.Kernel
	Variant
}

// Print writes a lowered kernel as C: the ABI, then one function of type mr_eval with the given
// name. The text depends on the arguments alone.
func Print(name string, k *codegen.Kernel, v Variant, isa *ISA) (string, error) {
	return PrintUnits([]Unit{{name, k, v}}, isa)
}

// PrintUnits is Print for several kernels in one text, such as the phases of one kernel: shared
// definitions are written once. The widest value of any unit sets the number of lanes.
func PrintUnits(units []Unit, isa *ISA) (string, error) {
	printers, width, err := printersOf(units)
	if err != nil {
		return "", err
	}
	guarded, flush := false, ir.KeepDenormals
	for i, p := range printers {
		flush = max(flush, p.k.Denormals)
		guarded = guarded || units[i].Guarded || p.anyOutput(codegen.Splat, codegen.Staged)
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
	head := ""
	if flush == ir.FlushDenormals {
		head = flushText
	}
	head += ABI + "\n" + vectorTypes(lanes) + walkText
	if guarded {
		head += guardText
	}
	return head + "\n" + help.text.String() + bodies, nil
}

// flushText makes the text of a kernel that flushes denormals differ from that of one that does
// not. Both have the same primitives; the caller sets the processor's mode. So their code is not
// shared.
const flushText = "/* Runs where the processor flushes denormals to zero. */\n"

// printersOf makes the printers of units, and finds the bytes of the widest value that any of them
// computes in vectors.
func printersOf(units []Unit) (list []*printer, width int, err error) {
	for _, u := range units {
		if len(u.Class) != len(u.Operands) {
			return nil, 0, fmt.Errorf("codegen/cgo: a unit has %d access classes and %d operands", len(u.Class), len(u.Operands))
		}
		p := &printer{k: u.Kernel, v: u.Variant}
		p.viaLanes()
		p.sort()
		list = append(list, p)
		width = max(width, p.width())
	}
	return list, width, nil
}
