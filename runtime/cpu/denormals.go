package cpu

import "github.com/millrace-go/millrace/ir"

// denormals says what a device makes of denormal numbers, and how. Processors for
// x86 flush by the rule of ir.Denormals, so C has them do it. Others have a rule
// of their own, which differs where a result is rounded up to the least normal
// number, and Go cannot have a processor do it: there it is software, in Go.
type denormals struct {
	ir.Denormals
	soft    bool // by what is interpreted, and by C, which then is not run
	machine bool // machine code does as C does, where there is some
}

func denormalsOf(d ir.Denormals, machine bool) denormals {
	return denormals{Denormals: d, soft: d == ir.FlushDenormals && (machine || !flushesNatively()), machine: machine}
}

// native is what threads are to do while they run C.
func (d denormals) native() ir.Denormals {
	if d.soft {
		return ir.KeepDenormals
	}
	return d.Denormals
}

// String is for a description of the device.
func (d denormals) String() string {
	switch {
	case d.Denormals == ir.KeepDenormals:
		return ""
	case d.soft && !d.machine:
		return ", denormals flushed in software"
	}
	return ", denormals flushed"
}
