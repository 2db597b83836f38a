package cpu

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
)

// layout describes a variant of a kernel in a text that other processes can read: the access
// classes of the operands, and whether the schedule is the thin one.
//
//	ccb/ccb/ccc
//	ccb/bbc/ccc guarded-rows cols thin
//
// The three words describe phases over points, phases over rows, and the second phase of a
// contraction, with a letter for each operand.
func (k *classKey) layout(operands int, thin bool) string {
	var b strings.Builder
	for i, of := range [...]*[maxOperands / 32]uint64{&k.points, &k.rows, &k.second} {
		if i > 0 {
			b.WriteByte('/')
		}
		for j := range operands {
			b.WriteString(codegen.AccessClass(of[j/32] >> (2 * (j % 32)) & 3).String())
		}
	}
	flags := k.flags()
	for i, name := range layoutFlags {
		if i == len(flags) && thin || i < len(flags) && *flags[i] {
			b.WriteString(" " + name)
		}
	}
	return b.String()
}

// layoutFlags are the words after the classes: those of classKey.flags, then the one of the
// schedule.
var layoutFlags = [...]string{"guarded", "guarded-rows", "cols", "dot", "thin"}

func (k *classKey) flags() [4]*bool {
	return [...]*bool{&k.guarded[0], &k.guarded[1], &k.cols, &k.dot}
}

// parseLayout parses the output of layout.
func parseLayout(s string, operands int) (k classKey, thin bool, err error) {
	words := strings.Split(s, " ")
	classes := strings.Split(words[0], "/")
	to := [...]*[maxOperands / 32]uint64{&k.points, &k.rows, &k.second}
	if len(classes) != len(to) || operands > maxOperands {
		return k, false, fmt.Errorf("cpu: %[2]q is not a layout of %[1]d operands", operands, s)
	}
	for i, list := range classes {
		if len(list) != operands {
			return k, false, fmt.Errorf("cpu: the layout %[3]q has %[1]d operands, the kernel has %[2]d", len(list), operands, s)
		}
		for j := range operands {
			c, ok := accessClass(list[j])
			if !ok {
				return k, false, fmt.Errorf("cpu: %q in the layout %q is not an access class", list[j], s)
			}
			setClass(to[i], j, c)
		}
	}
	flags, next := k.flags(), 0
	for _, w := range words[1:] {
		for next < len(layoutFlags) && layoutFlags[next] != w {
			next++
		}
		switch {
		case next == len(layoutFlags):
			return k, false, fmt.Errorf("cpu: the layout %[2]q has the unknown or misplaced word %[1]q", w, s)
		case next == len(flags):
			thin = true
		default:
			*flags[next] = true
		}
		next++
	}
	return k, thin, nil
}

func accessClass(letter byte) (codegen.AccessClass, bool) {
	for c := range codegen.NumAccesses {
		if c.String() == string(letter) {
			return c, true
		}
	}
	return 0, false
}

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
