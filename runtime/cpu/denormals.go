package cpu

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// denormals is how a device treats denormal numbers. In compiled code the processor flushes them,
// by the rule of ir.Denormals (see jit.Flushes). The interpreter and Go's own loops flush in
// software.
type denormals struct {
	ir.Denormals
	code bool // kernels are compiled
}

// String is the part of the device's description about denormals.
func (d denormals) String() string {
	switch {
	case d.Denormals == ir.KeepDenormals:
		return ""
	case !d.code || !jit.Flushes():
		return ", denormals flushed in software"
	}
	return ", denormals flushed"
}
