package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// spelling is the text of an op, in the notation of [Dialect], for some dtypes of its operands (of
// its result, for ops without operands or with a chosen result); $T is the result's type. Operands
// are names or bracketed literals, so no spelling needs brackets around them.
type spelling struct {
	op   ir.Op
	in   ir.DTypeSet
	text string
	uses string // a function of helpers that the text calls
}

var (
	f32s   = ir.SetOf(ir.Float32)
	i32s   = ir.SetOf(ir.Int32)
	u32s   = ir.SetOf(ir.Uint32)
	u8s    = ir.SetOf(ir.Uint8)
	bools  = ir.SetOf(ir.Bool)
	words  = i32s | u32s
	wides  = ir.SetOf(ir.Int64, ir.Uint64)
	narrow = f32s | words | u8s
)

// prims are the primitives. Bytes wrap by a mask; other types wrap by themselves. NaN compares
// unequal only in the negated form (naga prints WGSL's != as an ordered comparison).
var prims = []spelling{
	{ir.Add, f32s | words, "$0 + $1", ""},
	{ir.Sub, f32s | words, "$0 - $1", ""},
	{ir.Mul, f32s | words, "$0 * $1", ""},
	{ir.Neg, f32s | i32s, "-$0", ""},
	{ir.Neg, u32s, "$U(0u) - $0", ""},
	{ir.Abs, f32s | i32s, "abs($0)", ""},
	{ir.Abs, u32s | u8s, "$0", ""},
	{ir.Add, u8s, "($0 + $1) & $U(255u)", ""},
	{ir.Sub, u8s, "($0 - $1) & $U(255u)", ""},
	{ir.Mul, u8s, "($0 * $1) & $U(255u)", ""},
	{ir.Neg, u8s, "($U(0u) - $0) & $U(255u)", ""},

	{ir.Sqrt, f32s, "mr_sqrt($0)", "mr_sqrt"},
	{ir.Floor, f32s, "floor($0)", ""},
	{ir.Ceil, f32s, "ceil($0)", ""},
	{ir.Round, f32s, "$round($0)", ""},
	{ir.Trunc, f32s, "trunc($0)", ""},
	{ir.FMA, f32s, "fma($0, $1, $2)", ""},
	{ir.FDiv, f32s, "$0 / $1", ""},

	{ir.Quo, words | u8s, "$0 / $1", ""},
	{ir.Mod, u32s | u8s, "$0 % $1", ""},
	{ir.Mod, i32s, "$0 - $0 / $1 * $1", ""}, // Vulkan and GLSL leave % of negative numbers undefined
	{ir.MulHi, u32s, "mr_mulhi($0, $1)", "mr_mulhi"},
	{ir.And, words | u8s, "$0 & $1", ""},
	{ir.Or, words | u8s, "$0 | $1", ""},
	{ir.And, bools, "$and($0, $1)", ""},
	{ir.Or, bools, "$or($0, $1)", ""},
	{ir.Xor, words | u8s, "$0 ^ $1", ""},
	{ir.Xor, bools, "$xor($0, $1)", ""},
	{ir.Not, words, "~$0", ""},
	{ir.Not, u8s, "$0 ^ $U(255u)", ""},
	{ir.Not, bools, "$not($0)", ""},
	{ir.ShlRaw, u32s, "$0 << $1", ""},
	{ir.ShlRaw, i32s, "$0 << $bits($U, $1)", ""},
	{ir.ShlRaw, u8s, "($0 << $1) & $U(255u)", ""},
	{ir.ShrRaw, u32s | u8s, "$0 >> $1", ""},
	{ir.ShrRaw, i32s, "$0 >> $bits($U, $1)", ""},

	{ir.Eq, narrow | bools, "$eq($0, $1)", ""},
	{ir.Ne, words | u8s | bools, "$ne($0, $1)", ""},
	{ir.Ne, f32s, "$not(($eq($0, $1)))", ""},
	{ir.Lt, narrow, "$lt($0, $1)", ""},
	{ir.Le, narrow, "$le($0, $1)", ""},
	{ir.Gt, narrow, "$gt($0, $1)", ""},
	{ir.Ge, narrow, "$ge($0, $1)", ""},

	{ir.Add, wides, "mr_add64($0, $1)", "mr_add64"},
	{ir.Sub, wides, "mr_sub64($0, $1)", "mr_sub64"},
	{ir.Mul, wides, "mr_mul64($0, $1)", "mr_mul64"},
	{ir.And, wides, "wide($0.l & $1.l, $0.h & $1.h)", ""},
	{ir.Or, wides, "wide($0.l | $1.l, $0.h | $1.h)", ""},
	{ir.Xor, wides, "wide($0.l ^ $1.l, $0.h ^ $1.h)", ""},
	{ir.Not, wides, "wide(~$0.l, ~$0.h)", ""},
	{ir.ShlRaw, wides, "mr_shl64($0, $1.l)", "mr_shl64"},
	{ir.ShrRaw, ir.SetOf(ir.Uint64), "mr_shr64($0, $1.l)", "mr_shr64"},
	{ir.Eq, wides, "$and(($eq($0.l, $1.l)), ($eq($0.h, $1.h)))", ""},
	{ir.Ne, wides, "$or(($ne($0.l, $1.l)), ($ne($0.h, $1.h)))", ""},
	{ir.Lt, ir.SetOf(ir.Uint64), "mr_less64($0, $1)", "mr_less64"},
	{ir.Gt, ir.SetOf(ir.Uint64), "mr_less64($1, $0)", "mr_less64"},
}

// selves spell ops on a float and itself. Compilers assume x = x, x - x = 0 and x/x = 1, which hold
// for finite numbers only.
var selves = map[ir.Op]spelling{
	ir.Eq:   {text: "$not(mr_nan($0))", uses: "mr_nan"},
	ir.Le:   {text: "$not(mr_nan($0))", uses: "mr_nan"},
	ir.Ge:   {text: "$not(mr_nan($0))", uses: "mr_nan"},
	ir.Ne:   {text: "mr_nan($0)", uses: "mr_nan"},
	ir.Sub:  {text: "mr_self($0)", uses: "mr_self"},
	ir.Div:  {text: "mr_unit($0)", uses: "mr_unit"},
	ir.FDiv: {text: "mr_unit($0)", uses: "mr_unit"},
}

// spellings indexes the tables by op.
var spellings = func() (m [ir.NumOps][]spelling) {
	for _, s := range prims {
		m[s.op] = append(m[s.op], s)
	}
	for _, s := range builtins {
		m[s.op] = append(m[s.op], s)
	}
	return m
}()

func find(op ir.Op, dt ir.DType) (spelling, bool) {
	for _, s := range spellings[op] {
		if s.in.Has(dt) {
			return s, true
		}
	}
	return spelling{}, false
}

// Keeps reports that an op that is not a primitive has its own spelling here, which is cheaper than
// its expansion and accurate enough. operand is the dtype of its first operand.
func Keeps(op ir.Op, operand ir.DType) bool {
	for _, s := range builtins {
		if s.op == op && s.in.Has(operand) {
			return true
		}
	}
	_, ok := functions[op]
	return ok && operand == ir.Float32
}

// fit reduces a word to the low bits of a small type. For a type that holds all its values it only
// changes the type.
func fit(to, from ir.DType, x string) string {
	typ := map[string]string{"i32": "$I", "u32": "$U"}[scalarTypes[to]]
	if scalarTypes[to] != scalarTypes[from] {
		x = "$bits(" + typ + ", " + x + ")"
	}
	n := to.Bits()
	switch {
	case n == 32 || n == from.Bits() && scalarTypes[to] == scalarTypes[from]:
		return x
	case typ == "$U":
		return fmt.Sprintf("%s & $U(%du)", x, 1<<n-1)
	}
	return fmt.Sprintf("(%s << $U(%du)) >> $U(%du)", x, 32-n, 32-n)
}

// convert spells Convert. The operand is in range of the result.
func convert(to, from ir.DType, x string) (text, uses string, ok bool) {
	switch {
	case to == from:
		return x, "", true
	case from.Storage() || to.Storage():
		return fit(to, from, x), "", true
	case from == ir.Bool && isWide(to):
		return "wide($select($U(0u), $U(1u), " + x + "), $U(0u))", "", true
	case from == ir.Bool:
		one := map[ir.DType]string{ir.Float32: "1.0", ir.Int32: "1"}[to]
		if one == "" {
			one = "1u"
		}
		zero := strings.Replace(one, "1", "0", 1)
		return fmt.Sprintf("$select($T(%s), $T(%s), %s)", zero, one, x), "", true
	case isWide(from) && isWide(to):
		return x, "", true
	case isWide(from) && to == ir.Float32:
		if from == ir.Int64 {
			return "mr_float_i64(" + x + ")", "mr_float_i64", true
		}
		return "mr_float64(" + x + ")", "mr_float64", true
	case isWide(from) && to == ir.Int32:
		return "$bits($I, " + x + ".l)", "", true
	case isWide(from) && to == ir.Uint8:
		return x + ".l & $U(255u)", "", true
	case isWide(from):
		return x + ".l", "", true
	case isWide(to) && (from == ir.Uint32 || from == ir.Uint8):
		return "wide(" + x + ", $U(0u))", "", true
	case isWide(to) && from == ir.Int32:
		return "wide($bits($U, " + x + "), $bits($U, " + x + " >> $U(31u)))", "", true
	case isWide(to):
		return "", "", false
	case to == ir.Uint8 && from == ir.Float32:
		return "$U(" + x + ") & $U(255u)", "", true
	case to == ir.Uint8 && from == ir.Int32:
		return "$bits($U, " + x + ") & $U(255u)", "", true
	case to == ir.Uint8:
		return x + " & $U(255u)", "", true
	case to == ir.Uint32 && from == ir.Uint8:
		return x, "", true
	}
	return "$T(" + x + ")", "", true
}
