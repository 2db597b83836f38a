package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// codeFacts says which compiled code is timed: what it was printed from, by which
// version of the printer, for vectors of how many bytes, and what compiled it.
// Nothing in it says where: timings that were taken with a compiler hold for the
// same code that came with the program, which on processors with the least vectors
// goes by another name of an ISA.
func codeFacts(b []byte, form string, isa *cgo.ISA, maker string) []byte {
	return fmt.Appendf(b, " code %s of %s for %d by %s", form, ShipABI(), isa.Bytes, maker)
}

// codeFacts adds those of the code that a launch runs.
func (r *ready) codeFacts(b []byte) ([]byte, error) {
	if r.code == nil {
		return append(b, " tier 0"...), nil
	}
	key := r.classKey()
	form, err := r.sched.variantFor(&key).formText()
	if err != nil {
		return nil, err
	}
	maker, err := r.p.dev.makerOf(r.code)
	if err != nil {
		return nil, err
	}
	return codeFacts(b, form, r.code.isa(), maker), nil
}

// codeFacts adds those of the code that the tiles of a chain run. Which of it that
// is is known only when there is a tile.
func (p *program) codeFacts(b []byte) ([]byte, error) {
	code := &compiled{}
	if len(p.shipped) > 0 {
		code.shipped = p.shipped[0]
		if err := code.shipped.object.choose(); err != nil {
			return nil, err
		}
	}
	maker, err := p.dev.makerOf(code)
	if err != nil {
		return nil, err
	}
	phases, err := p.sched.lowered()
	if err != nil {
		return nil, err
	}
	return codeFacts(b, formOf(phases, nil), code.isa(), maker), nil
}

// makerOf is the compiler that made code.
func (d *device) makerOf(code *compiled) (string, error) {
	if code.shipped != nil {
		return builtBy(), nil // the go command compiles all C of a program with one compiler
	}
	return d.comp.maker()
}

// formText is the form of what a variant is printed from.
func (v *variant) formText() (string, error) {
	if form := v.form.Load(); form != nil {
		return *form, nil
	}
	units, phases, err := v.units()
	if err != nil {
		return "", err
	}
	form := formOf(phases, units)
	v.form.Store(&form)
	return form, nil
}
