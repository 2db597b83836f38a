package cgo

import "github.com/millrace-go/millrace/ir"

// Scalar spells primitives over scalars, for loops that the C compiler turns
// into vectors itself: the block functions of runtime/cpu. Values are held as
// in printed kernels: eight and sixteen bits in 32, a Bool as a mask of all ones or zero.
type Scalar struct{ s speller }

// NewScalar returns a printer whose text has no helper yet.
func NewScalar() *Scalar { return &Scalar{speller{help: newHelpers(0)}} }

// Type is the C type that holds a value.
func (p *Scalar) Type(dt ir.DType) string { return p.s.typ(dt) }

// Elem is the C type of an element in memory.
func (p *Scalar) Elem(dt ir.DType) string { return ctypes[dt].elem }

// Load turns an element in memory into a value.
func (p *Scalar) Load(dt ir.DType, elem string) string {
	if dt == ir.Bool {
		return "-(s_i32)" + elem
	}
	return elem
}

// Store turns a value into an element.
func (p *Scalar) Store(dt ir.DType, value string) string {
	if dt == ir.Bool {
		return "(mr_u8)(" + value + " & 1)"
	}
	if elem, ok := narrow(dt); ok {
		return "(mr_" + elem + ")" + value
	}
	return value
}

// Literal spells a constant.
func (p *Scalar) Literal(dt ir.DType, bits uint64) string { return p.s.help.literal(dt, bits) }

// Expr spells a primitive whose operands are C expressions.
func (p *Scalar) Expr(in ir.Instr, args []string, argDT []ir.DType) (string, error) {
	a := make([]operand, len(args))
	for i := range args {
		a[i] = operand{args[i], argDT[i], 4}
	}
	out, err := p.s.spell(in, a)
	return out.expr, err
}

// Sub is the name of the function of a Rare's sub-program.
func (p *Scalar) Sub(id uint64) string { return p.s.help.sub(id) }

// Types declares the types of values; it comes first in a text.
func (p *Scalar) Types() string { return scalarTypes() }

// Helpers is the text of all helpers that were used; it comes before the code
// that uses them.
func (p *Scalar) Helpers() string { return p.s.help.text.String() }
