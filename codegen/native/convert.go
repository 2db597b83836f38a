package native

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// Conversions by value. Conversions that one instruction can do are in tables. The others are
// composed of several instructions and are exact: every conversion rounds once.

func (c *code) convert(in ir.Instr, x []Value, dts []ir.DType) Value {
	from, to, v := dts[0], in.DT, x[0]
	switch {
	case from == to:
		return v
	case from == ir.Bool:
		return c.masked(to, v)
	case to == ir.Bool:
		return c.spell(ir.Instr{Op: ir.Ne, DT: ir.Bool}, []Value{v, c.Splat(SizeOf(from), 0, c.Bytes(from))}, dts)
	case from.IsFloat() && from.Held() == from && to.IsInt() && to.Size() < 4: // through 32 bits
		return c.fit(to, ir.Int32, c.Change(from, ir.Int32, v))
	case SizeOf(from) == 8 && to.IsInt() && to.Size() < 4:
		return c.fit(to, ir.Int32, c.Halved(v))
	}
	if a, b := from.Held(), to.Held(); SizeOf(from) == 8 || SizeOf(to) == 8 || a.IsFloat() || b.IsFloat() {
		if from.Size() < 4 {
			a = ir.Int32 // all their values fit both
			if to.IsInt() && SizeOf(to) == 8 && !from.IsSigned() {
				a = ir.Uint32
			}
		}
		return c.Change(a, b, v)
	}
	return c.fit(to, from, v)
}

// masked is 1 where a mask is set, else 0.
func (c *code) masked(to ir.DType, m Value) Value {
	n, elem, one := c.Bytes(to), SizeOf(to), uint64(1)
	switch to {
	case ir.Float32:
		one = uint64(math.Float32bits(1))
	case ir.Float64:
		one = math.Float64bits(1)
	}
	return c.Choice(m, n, elem, one)
}

// fit reduces a value held in 32 bits to the low bits of a smaller type; for a type of the same
// width it does nothing.
func (c *code) fit(to, from ir.DType, v Value) Value {
	bits := to.Bits()
	n := c.Bytes(to)
	switch {
	case bits >= 32, bits == from.Bits() && (to.Held() == ir.Int32) == (from.Held() == ir.Int32), bits > from.Bits() && from.Held() != ir.Int32:
		return v
	case to.Held() == ir.Int32:
		return c.Extended(n, v, int16(32-bits))
	}
	return c.BitAnd(n, v, c.Splat(4, 1<<bits-1, n))
}

func (c *code) bitcast(in ir.Instr, x []Value, dts []ir.DType) Value {
	from, to := dts[0], in.DT
	switch {
	case from == to:
		return x[0]
	case from == ir.Bool || to == ir.Bool:
		return c.convert(in, x, dts) // one byte, 0 or 1
	case from.Size() < 4:
		return c.fit(to, from, x[0])
	}
	return x[0]
}
