package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
)

// unitsOf returns the units to print for a layout of a schedule that is lowered for tier 1: a
// function for each phase.
func unitsOf(s *codegen.Schedule, key *classKey) []cgo.Unit {
	var units []cgo.Unit
	for i := range s.Phases {
		ph := &s.Phases[i]
		name := kernelSymbol
		if len(s.Phases) > 1 {
			name = fmt.Sprintf("%s_%d", kernelSymbol, i)
		}
		units = append(units, cgo.Unit{Name: name, Kernel: ph.Kernel, Variant: key.variant(i, ph, s.Temps)})
	}
	return units
}

// lowerForC lowers a kernel and splits it into phases, as tier 1 does.
func lowerForC(k *codegen.Kernel, opt codegen.PhaseOptions) (*phasePlan, error) {
	lowered, err := codegen.Lower(k)
	if err != nil {
		return nil, err
	}
	opt.Most = maxPhaseOperands
	return planPhases(codegen.Phases(lowered, opt))
}
