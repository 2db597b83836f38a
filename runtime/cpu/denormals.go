package cpu

import "github.com/millrace-go/millrace/ir"

// denormals says what a device makes of denormal numbers. Code has the processor flush
// them, by the rule of ir.Denormals (machineFlushes); what is interpreted, and Go's own
// loops, flush in software.
type denormals struct {
	ir.Denormals
	code bool // kernels become code
}

// String is for a description of the device.
func (d denormals) String() string {
	switch {
	case d.Denormals == ir.KeepDenormals:
		return ""
	case !d.code || !machineFlushes():
		return ", denormals flushed in software"
	}
	return ", denormals flushed"
}
