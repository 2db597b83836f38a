package cgo

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// operand is a value as an expression.
type operand struct {
	expr  string
	dt    ir.DType
	width int // bytes of a vector mask's lanes: 4 or 8; 4 for scalars
}

// speller converts primitives to C expressions, over vectors or over scalars. Both represent values
// in the same way, so one table serves both: bytes are held in 32 bits, and a Bool is all ones or
// zero.
type speller struct {
	vec  bool
	help *helpers
}

func (s *speller) prefix() string {
	if s.vec {
		return "v_"
	}
	return "s_"
}

// typ is the C type of a value.
func (s *speller) typ(dt ir.DType) string { return s.prefix() + short(dt) }

// maskType is the C type of a Bool with lanes of so many bytes.
func (s *speller) maskType(width int) string {
	if width == 8 {
		return s.prefix() + "i64"
	}
	return s.prefix() + "i32"
}

// held is the C type of a value; for a Bool it depends on the width of its lanes.
func (s *speller) held(dt ir.DType, width int) string {
	if dt == ir.Bool {
		return s.maskType(width)
	}
	return s.typ(dt)
}

// call writes a call of a helper, and defines the helper.
func (s *speller) call(name string, dt ir.DType, args ...string) string {
	return s.help.call(name, s.vec, dt, args...)
}

// splat is a constant or scalar expression as a value.
func (s *speller) splat(dt ir.DType, scalar string) string {
	if !s.vec {
		return "(" + scalar + ")"
	}
	return s.help.call("splat", true, dt, scalar)
}

// mask is a Bool operand with lanes of the given width.
func (s *speller) mask(o operand, width int) string {
	if o.width == width || !s.vec {
		return o.expr
	}
	return fmt.Sprintf("__builtin_convertvector(%s, %s)", o.expr, s.maskType(width))
}

// primitive is one entry of the table of spellings.
type primitive func(s *speller, in ir.Instr, a []operand) string

var primitives = [ir.NumOps]primitive{
	ir.Add:     arithmetic("+"),
	ir.Sub:     arithmetic("-"),
	ir.Mul:     arithmetic("*"),
	ir.FDiv:    func(s *speller, in ir.Instr, a []operand) string { return a[0].expr + " / " + a[1].expr },
	ir.Neg:     negate,
	ir.Abs:     absolute,
	ir.Sqrt:    helper("sqrt"),
	ir.Floor:   helper("floor"),
	ir.Ceil:    helper("ceil"),
	ir.Round:   helper("round"),
	ir.Trunc:   helper("trunc"),
	ir.FMA:     helper("fma"),
	ir.Quo:     helper("quo"),
	ir.Mod:     helper("mod"),
	ir.MulHi:   helper("mulhi"),
	ir.And:     bitwise("&"),
	ir.Or:      bitwise("|"),
	ir.Xor:     bitwise("^"),
	ir.Not:     complement,
	ir.ShlRaw:  shift("<<"),
	ir.ShrRaw:  shift(">>"),
	ir.Eq:      compare("=="),
	ir.Ne:      compare("!="),
	ir.Lt:      compare("<"),
	ir.Le:      compare("<="),
	ir.Gt:      compare(">"),
	ir.Ge:      compare(">="),
	ir.Where:   choose,
	ir.Convert: convert,
	ir.Bitcast: bitcast,
	ir.Lookup:  lookup,
}

// spell returns the expression of an instruction, and for a mask the width of its lanes.
func (s *speller) spell(in ir.Instr, a []operand) (operand, error) {
	f := primitives[in.Op]
	switch {
	case in.Op == ir.Rare:
		f = rare // not in the table, because rare uses the table to spell its sub-program
	case f == nil:
		return operand{}, fmt.Errorf("codegen/cgo: %v is not a primitive", in.Op)
	}
	out := operand{dt: in.DT, width: 4}
	if in.DT == ir.Bool && s.vec {
		out.width = maskWidth(in, a)
		if in.Op == ir.Rare {
			out.width = a[1].width
		}
	}
	out.expr = f(s, in, a)
	return out, s.help.err
}

// maskWidth is the width of the lanes of a vector mask: that of the compared values, or of the
// widest mask among the operands.
func maskWidth(in ir.Instr, a []operand) int {
	w := 4
	for _, o := range a {
		if o.dt == ir.Bool {
			w = max(w, o.width)
		} else if in.Op != ir.Rare {
			w = max(w, ctypes[o.dt].size)
		}
	}
	return w
}

func helper(name string) primitive {
	return func(s *speller, in ir.Instr, a []operand) string {
		args := make([]string, len(a))
		for i, o := range a {
			args[i] = o.expr
		}
		if in.DT.IsInt() && (in.Op == ir.Floor || in.Op == ir.Ceil || in.Op == ir.Round || in.Op == ir.Trunc) {
			return a[0].expr
		}
		return s.call(name, in.DT, args...)
	}
}

// wrapped reduces a Uint8 result of 32-bit arithmetic to eight bits.
func (s *speller) wrapped(dt ir.DType, expr string) string {
	if dt != ir.Uint8 {
		return expr
	}
	return fmt.Sprintf("(%s) & %s", expr, s.splat(ir.Uint8, "0xffu"))
}

// arithmetic on signed integers uses the unsigned type, for which C defines wrapping.
func arithmetic(op string) primitive {
	return func(s *speller, in ir.Instr, a []operand) string {
		if in.DT == ir.Int32 || in.DT == ir.Int64 {
			u := s.typ(unsignedOf(in.DT))
			return fmt.Sprintf("(%s)((%s)%s %s (%s)%s)", s.typ(in.DT), u, a[0].expr, op, u, a[1].expr)
		}
		return s.wrapped(in.DT, a[0].expr+" "+op+" "+a[1].expr)
	}
}

func negate(s *speller, in ir.Instr, a []operand) string {
	switch {
	case in.DT.IsFloat():
		return "-" + a[0].expr
	case in.DT.IsSigned():
		return fmt.Sprintf("(%s)-(%s)%s", s.typ(in.DT), s.typ(unsignedOf(in.DT)), a[0].expr)
	}
	return s.wrapped(in.DT, "-"+a[0].expr)
}

func absolute(s *speller, in ir.Instr, a []operand) string {
	if in.DT.IsInt() && !in.DT.IsSigned() {
		return a[0].expr
	}
	return s.call("abs", in.DT, a[0].expr)
}

func bitwise(op string) primitive {
	return func(s *speller, in ir.Instr, a []operand) string {
		if in.DT == ir.Bool {
			w := maskWidth(in, a)
			return s.mask(a[0], w) + " " + op + " " + s.mask(a[1], w)
		}
		return a[0].expr + " " + op + " " + a[1].expr
	}
}

func complement(s *speller, in ir.Instr, a []operand) string {
	return s.wrapped(in.DT, "~"+a[0].expr)
}

func shift(op string) primitive {
	return func(s *speller, in ir.Instr, a []operand) string {
		dt := in.DT
		if op == "<<" && dt.IsSigned() {
			u := s.typ(unsignedOf(dt))
			return fmt.Sprintf("(%s)((%s)%s << (%s)%s)", s.typ(dt), u, a[0].expr, u, a[1].expr)
		}
		return s.wrapped(dt, a[0].expr+" "+op+" "+a[1].expr)
	}
}

// compare makes masks. A vector comparison gives a mask; the result of a scalar comparison is
// negated. Masks themselves are compared bit by bit.
func compare(op string) primitive {
	return func(s *speller, in ir.Instr, a []operand) string {
		if a[0].dt == ir.Bool {
			w := maskWidth(in, a)
			x := s.mask(a[0], w) + " ^ " + s.mask(a[1], w)
			if op == "==" {
				return "~(" + x + ")"
			}
			return x
		}
		if s.vec {
			return fmt.Sprintf("(%s)(%s %s %s)", s.maskType(ctypes[a[0].dt].size), a[0].expr, op, a[1].expr)
		}
		return fmt.Sprintf("-(s_i32)(%s %s %s)", a[0].expr, op, a[1].expr)
	}
}

func choose(s *speller, in ir.Instr, a []operand) string {
	if in.DT == ir.Bool {
		w := maskWidth(in, a)
		m, x, y := s.mask(a[0], w), s.mask(a[1], w), s.mask(a[2], w)
		return fmt.Sprintf("(%s & %s) | (~%s & %s)", m, x, m, y)
	}
	if !s.vec {
		return fmt.Sprintf("%s ? %s : %s", a[0].expr, a[1].expr, a[2].expr)
	}
	return s.call("sel", in.DT, s.mask(a[0], ctypes[in.DT].size), a[1].expr, a[2].expr)
}

// ones holds the literal of 1 in each type; a mask is ANDed with it to become a number.
var ones = [ir.NumDTypes]string{
	ir.Uint8: "1u", ir.Int32: "1", ir.Int64: "1", ir.Uint32: "1u", ir.Uint64: "1u",
	ir.Float32: "0x1p+00f", ir.Float64: "0x1p+00",
}

func convert(s *speller, in ir.Instr, a []operand) string {
	from, to, x := a[0].dt, in.DT, a[0].expr
	switch {
	case from == to:
		return x
	case from.Storage() || to.Storage():
		return s.fit(to, from, x)
	case from == ir.Bool && !s.vec:
		return fmt.Sprintf("(s_%s)(%s & 1)", short(to), x)
	case from == ir.Bool:
		u := s.typ(unsignedOf(to))
		one := fmt.Sprintf("(%s)%s", u, s.splat(to, ones[to]))
		return fmt.Sprintf("(%s)((%s)%s & %s)", s.typ(to), u, s.mask(a[0], ctypes[to].size), one)
	case to == ir.Bool && s.vec:
		return fmt.Sprintf("(%s)(%s != %s)", s.maskType(ctypes[from].size), x, s.splat(from, "0"))
	case to == ir.Bool:
		return fmt.Sprintf("-(s_i32)(%s != 0)", x)
	case to == ir.Uint8 && from.IsFloat():
		return s.wrapped(to, fmt.Sprintf("(%s)%s", s.typ(to), s.value(ir.Int32, x)))
	case to == ir.Uint8 && ctypes[from].size == 4:
		return s.wrapped(to, fmt.Sprintf("(%s)%s", s.typ(to), x))
	case to == ir.Uint8:
		return s.wrapped(to, s.value(to, x))
	case to.IsInt() && from.IsInt() && ctypes[to].size == ctypes[from].size:
		return fmt.Sprintf("(%s)%s", s.typ(to), x)
	}
	return s.value(to, x)
}

// fit reduces a value held in 32 bits to the low bits of a smaller type; for a wider type it only
// changes the C type.
func (s *speller) fit(to, from ir.DType, x string) string {
	bits := to.Bits()
	elem, small := narrow(to)
	signed := ctypes[to].short == "i32"
	switch {
	case !small || bits == from.Bits() && signed == (ctypes[from].short == "i32"), bits > from.Bits() && !from.IsSigned():
		return fmt.Sprintf("(%s)%s", s.typ(to), x)
	case !s.vec:
		return fmt.Sprintf("(%s)(mr_%s)%s", s.typ(to), elem, x)
	case signed:
		return fmt.Sprintf("(%s)((%s)%s << %d) >> %d", s.typ(to), s.typ(ir.Uint32), x, 32-bits, 32-bits)
	}
	return fmt.Sprintf("(%s)%s & %s", s.typ(to), x, s.splat(ir.Uint32, fmt.Sprintf("%#xu", uint32(1)<<bits-1)))
}

// value is a conversion by value.
func (s *speller) value(to ir.DType, x string) string {
	if s.vec {
		return fmt.Sprintf("__builtin_convertvector(%s, %s)", x, s.typ(to))
	}
	return fmt.Sprintf("(%s)%s", s.typ(to), x)
}

func bitcast(s *speller, in ir.Instr, a []operand) string {
	from, to, x := a[0].dt, in.DT, a[0].expr
	switch {
	case from == to:
		return x
	case from == ir.Bool || to == ir.Bool:
		return convert(s, in, a) // one byte, 0 or 1
	case from.Storage() || to.Storage():
		return s.fit(to, from, x)
	case s.vec || !from.IsFloat() && !to.IsFloat():
		return fmt.Sprintf("(%s)%s", s.typ(to), x)
	case to.IsFloat():
		return s.call("bits", to, fmt.Sprintf("(%s)%s", s.typ(unsignedOf(to)), x))
	}
	return fmt.Sprintf("(%s)%s", s.typ(to), s.call("tobits", from, x))
}

func lookup(s *speller, in ir.Instr, a []operand) string {
	return s.help.lookup(s.vec, in.Imm, in.DT) + "(" + a[0].expr + ")"
}

func rare(s *speller, in ir.Instr, a []operand) string {
	return s.help.rare(s, in, a)
}
