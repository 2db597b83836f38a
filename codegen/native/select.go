package native

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Kind is the class of dtypes that use the same instructions. Elements of 8 and 16 bits are held in
// 32 bits, 16-bit floats as their bits. A Bool is a mask.
type Kind uint8

const (
	F32 Kind = iota
	F64
	I32
	I64
	numKinds
)

var Kinds = func() (kinds [ir.NumDTypes]Kind) {
	held := map[ir.DType]Kind{
		ir.Float32: F32, ir.Float64: F64, ir.Int32: I32, ir.Uint32: I32, ir.Int64: I64, ir.Uint64: I64,
	}
	for dt := range kinds {
		kinds[dt] = held[ir.DType(dt).Held()]
	}
	return kinds
}()

// Row has an instruction for each kind.
type Row [numKinds]Op

// SizeOf returns the bytes of a value's lane. If masks are vectors, their lanes have the width of
// the widest value instead.
func SizeOf(dt ir.DType) int {
	if k := Kinds[dt]; dt != ir.Bool && (k == F64 || k == I64) {
		return 8
	}
	return 4
}

// Bytes returns the size of a vector of a dtype.
func (c *Builder) Bytes(dt ir.DType) int {
	if dt == ir.Bool && !c.ISA.Masks {
		return c.Lanes * c.width
	}
	return c.Lanes * SizeOf(dt)
}

// spell makes the value of a primitive that does not access memory. x are the values of its operands,
// dts their dtypes.
func (c *code) spell(in ir.Instr, x []Value, dts []ir.DType) Value {
	switch {
	case !c.ISA.Spells(in.Op):
		c.Fail("%v is not a primitive", in.Op)
		return 0
	case in.Op == ir.Convert:
		return c.convert(in, x, dts)
	case in.Op == ir.Bitcast:
		return c.bitcast(in, x, dts)
	case in.Op == ir.Lookup:
		return c.lookup(in, x)
	case in.Op == ir.Rare:
		return c.rare(in, x, dts)
	}
	return c.Primitive(in, x, dts)
}

// literal returns the value of a Const.
func (c *Builder) literal(in ir.Instr) Value {
	if in.DT == ir.Bool {
		return c.AllLanes(in.Imm != 0)
	}
	return c.Splat(SizeOf(in.DT), in.DT.HeldBits(in.Imm), c.Bytes(in.DT))
}

// AllLanes returns a mask of all lanes, or of none.
func (c *Builder) AllLanes(set bool) Value {
	bits := uint64(0)
	if set {
		bits = ^uint64(0)
	}
	if !c.ISA.Masks {
		return c.Splat(c.width, bits, c.Lanes*c.width)
	}
	key := Constant{Bits: bits, Size: 1, Count: uint8(c.Lanes)}
	if v, ok := c.consts[key]; ok {
		return v
	}
	v := c.NewValue(Info{Mask: true, Size: c.Lanes, Home: anywhere, Elem: uint8(bits & 1)})
	c.consts[key] = v
	return v
}

// Wrapped reduces a Uint8 result of 32-bit arithmetic to eight bits.
func (c *Builder) Wrapped(dt ir.DType, v Value) Value {
	if dt != ir.Uint8 {
		return v
	}
	n := c.Bytes(dt)
	return c.m.BitAnd(n, v, c.Splat(4, 0xff, n))
}

func SignBit(k Kind) (elem int, bits uint64) {
	if k == F64 || k == I64 {
		return 8, 1 << 63
	}
	return 4, 1 << 31
}

// LanesAs converts a vector mask to the lane width of a vector of n bytes.
func (c *Builder) LanesAs(m Value, n int) Value {
	have := c.Vals[m].Size
	switch {
	case have == n:
		return m
	case have < n:
		return c.m.SignExtended(n, m)
	}
	return c.m.Halved(m)
}

// AsMask converts the result of a comparison to the lane width of masks.
func (c *Builder) AsMask(m Value) Value { return c.LanesAs(m, c.Bytes(ir.Bool)) }

// extremum recognises a Where that one instruction of the target can do.
func (c *code) extremum(in ir.Instr) (o Op, a, b ir.Ref) {
	if in.Op != ir.Where || in.DT == ir.Bool || in.DT.Storage() {
		return OpNone, 0, 0
	}
	m := c.k.Body[in.Args[0]]
	x, y := in.Args[1], in.Args[2]
	if m.Op != ir.Lt && m.Op != ir.Gt {
		return OpNone, 0, 0
	}
	smaller := m.Op == ir.Lt
	switch {
	case m.Args[0] == x && m.Args[1] == y:
	case m.Args[0] == y && m.Args[1] == x:
		smaller = !smaller
	default:
		return OpNone, 0, 0
	}
	return c.ChoiceOp(in.DT, smaller), x, y
}

func describe(i int, in ir.Instr) string {
	text := codegen.FormatBody([]ir.Instr{in})
	return fmt.Sprintf("%%%d%s", i, text[2:])
}
