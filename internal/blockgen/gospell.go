package main

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// goSpelling is a primitive as a Go expression: $0, $1, $2 are the operands, $T the result's type,
// $N its bits. Float results are converted to their own type if an addition could otherwise absorb
// the rounding of a product.
type goSpelling struct {
	float, integer, boolean string
}

var goSpellings = map[ir.Op]goSpelling{
	ir.Add:    {float: "$0 + $1", integer: "$0 + $1"},
	ir.Sub:    {float: "$0 - $1", integer: "$0 - $1"},
	ir.Mul:    {float: "$T($0 * $1)", integer: "$0 * $1"},
	ir.Neg:    {float: "-$0", integer: "-$0"},
	ir.Abs:    {float: "abs$N($0)", integer: "absInt($0)"},
	ir.FDiv:   {float: "$0 / $1"},
	ir.Sqrt:   {float: "$T(math.Sqrt(float64($0)))"},
	ir.Floor:  {float: "$T(math.Floor(float64($0)))"},
	ir.Ceil:   {float: "$T(math.Ceil(float64($0)))"},
	ir.Round:  {float: "$T(math.RoundToEven(float64($0)))"},
	ir.Trunc:  {float: "$T(math.Trunc(float64($0)))"},
	ir.Quo:    {integer: "$0 / $1"},
	ir.Mod:    {integer: "$0 % $1"},
	ir.MulHi:  {integer: "uint32(uint64($0) * uint64($1) >> 32)"},
	ir.And:    {integer: "$0 & $1", boolean: "$0 && $1"},
	ir.Or:     {integer: "$0 | $1", boolean: "$0 || $1"},
	ir.Xor:    {integer: "$0 ^ $1", boolean: "$0 != $1"},
	ir.Not:    {integer: "^$0", boolean: "!$0"},
	ir.ShlRaw: {integer: "$0 << ($1 & ($N - 1))"},
	ir.ShrRaw: {integer: "$0 >> ($1 & ($N - 1))"},
}

var goCompare = map[ir.Op]string{ir.Eq: "==", ir.Ne: "!=", ir.Lt: "<", ir.Le: "<=", ir.Gt: ">", ir.Ge: ">="}

func goSpell(in ir.Instr, args []string, dts []ir.DType) (string, error) {
	for i := range args {
		args[i] = group(args[i])
	}
	if c, ok := goCompare[in.Op]; ok {
		return args[0] + " " + c + " " + args[1], nil
	}
	switch in.Op {
	case ir.Convert:
		return goConvert(in.DT, dts[0], args[0]), nil
	case ir.Bitcast:
		return goBitcast(in.DT, dts[0], args[0]), nil
	}
	s := goSpellings[in.Op]
	form := s.integer
	switch {
	case in.DT.IsFloat():
		form = s.float
	case in.DT == ir.Bool:
		form = s.boolean
	case in.Op == ir.Floor || in.Op == ir.Ceil || in.Op == ir.Round || in.Op == ir.Trunc:
		form = "$0"
	case in.Op == ir.Abs && !in.DT.IsSigned():
		form = "$0"
	}
	if form == "" {
		return "", fmt.Errorf("no Go spelling of %v of %v", in.Op, in.DT)
	}
	pairs := []string{"$T", goType(in.DT), "$N", fmt.Sprint(in.DT.Bits())}
	for i, a := range args {
		pairs = append(pairs, fmt.Sprintf("$%d", i), a)
	}
	return strings.NewReplacer(pairs...).Replace(form), nil
}

func goConvert(to, from ir.DType, x string) string {
	switch {
	case to == from:
		return x
	case to == ir.Bool:
		return x + " != 0"
	case from == ir.Bool:
		return fmt.Sprintf("%s(b2u(%s))", goType(to), x)
	case from == ir.Uint64 && to == ir.Float32:
		return "u64f32(" + x + ")"
	}
	return fmt.Sprintf("%s(%s)", goType(to), x)
}

func goBitcast(to, from ir.DType, x string) string {
	switch {
	case to == from:
		return x
	case to.Storage() || from.Storage():
		return fmt.Sprintf("%s(%s)", goType(to), x) // a 16-bit float is represented by its bits
	case to.IsFloat():
		return fmt.Sprintf("math.Float%dfrombits(uint%d(%s))", to.Bits(), to.Bits(), x)
	case from.IsFloat():
		return fmt.Sprintf("%s(math.Float%dbits(%s))", goType(to), from.Bits(), x)
	case to == ir.Bool:
		return x + " != 0"
	case from == ir.Bool:
		return fmt.Sprintf("%s(b2u(%s))", goType(to), x)
	}
	return fmt.Sprintf("%s(%s)", goType(to), x)
}
