package shader

import "github.com/millrace-go/millrace/ir"

// builtins are ops that are not primitives but are written whole: languages have them, or have a
// form that costs a GPU less than the exact expansion. Each stays within the op's tolerance in ir.
// If a language's own function does not (tanh near zero, sin and cos outside a period), the
// expansion or a helper is used.
var builtins = []spelling{
	{ir.Exp, f32s, "exp($0)", ""},
	{ir.Exp2, f32s, "exp2($0)", ""},
	{ir.Recip, f32s, "$F(1.0) / $0", ""},
	{ir.Rsqrt, f32s, "$rsqrt($0)", ""},
	{ir.Square, f32s | words, "$0 * $0", ""},
	{ir.Div, f32s, "$0 / $1", ""},
	{ir.Maximum, f32s, "mr_max($0, $1)", "mr_max"},
	{ir.Minimum, f32s, "mr_min($0, $1)", "mr_min"},
	{ir.Maximum, words | u8s, "max($0, $1)", ""},
	{ir.Minimum, words | u8s, "min($0, $1)", ""},
	{ir.Erf, f32s, "mr_erf($0)", "mr_erf"},
	{ir.Gelu, f32s, "mr_gelu($0)", "mr_gelu"},
	{ir.GeluTanh, f32s, "mr_gelutanh($0)", "mr_gelutanh"},
	// Tests the bits for "negative and not NaN": a comparison would be max(x, 0) to compilers.
	{ir.Relu, f32s, "$select($0, $F(0.0), $le(($bits($U, $0) - $U(0x80000000u)), $U(0x7f800000u)))", ""},
	{ir.Relu, i32s, "max($0, $I(0))", ""},
	{ir.IsNaN, f32s, "mr_nan($0)", "mr_nan"},
	{ir.IsInf, f32s, "$eq(($bits($U, $0) & $U(0x7fffffffu)), $U(0x7f800000u))", ""},
	{ir.IsFinite, f32s, "$lt(($bits($U, $0) & $U(0x7fffffffu)), $U(0x7f800000u))", ""},
}
