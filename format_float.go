package millrace

import (
	"math"
	"strconv"
	"strings"
)

// floatCells chooses one layout for all elements, as NumPy does: positional, or scientific if the
// magnitudes are extreme. Positional cells show the shortest digits that identify each element,
// aligned at the point. Scientific cells all have the same number of digits.
func floatCells[T float32 | float64](vs []T, dt DType, precision int) func(T) string {
	f := floatLayout{dt: dt, precision: precision}
	lo, hi := T(math.Inf(1)), T(0)
	for _, v := range vs {
		if a := max(v, -v); a != 0 && !math.IsInf(float64(a), 0) && a == a {
			lo, hi = min(lo, a), max(hi, a)
		}
	}
	f.scientific = hi != 0 && (hi >= 1e8 || lo < 1e-4 || hi/lo > 1000)
	special, minus := false, false
	for _, v := range vs {
		x := float64(v)
		if math.IsInf(x, 0) || x != x {
			special = true
			minus = minus || x < 0
			continue
		}
		whole, frac, exp := f.digits(x)
		f.left, f.right, f.exp = max(f.left, len(whole)), max(f.right, len(frac)), max(f.exp, len(exp))
	}
	if special {
		width := len("inf")
		if minus {
			width++
		}
		f.left = max(f.left, width-f.tail())
	}
	return func(v T) string { return f.cell(float64(v)) }
}

// floatLayout is the common form of the cells of an array.
type floatLayout struct {
	dt          DType
	precision   int // digits after the point, at most
	scientific  bool
	left, right int // digits before and after the point
	exp         int // characters of the exponent with its sign
}

// tail is the width from the point to the end of a cell.
func (f *floatLayout) tail() int {
	if f.scientific && f.exp > 0 {
		return 1 + f.right + 1 + f.exp
	}
	return 1 + f.right
}

func (f *floatLayout) cell(x float64) string {
	if math.IsInf(x, 0) || x != x {
		return padLeft(special(x), f.left+f.tail())
	}
	if !f.scientific {
		whole, frac, _ := f.digits(x)
		return padLeft(whole, f.left) + "." + frac + strings.Repeat(" ", f.right-len(frac))
	}
	// Show exact digits, not zeros after the shortest ones.
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(x, 'e', f.right, 64), "e")
	if f.right == 0 {
		mantissa += "."
	}
	return padLeft(mantissa, f.left+1+f.right) + "e" + exp[:1] + strings.Repeat("0", f.exp-len(exp)) + exp[1:]
}

// digits splits x into the whole part with its sign, the digits after the point without trailing
// zeros, and the exponent with its sign.
func (f *floatLayout) digits(x float64) (whole, frac, exp string) {
	verb := byte('f')
	if f.scientific {
		verb = 'e'
	}
	text := shortest(x, verb, f.dt)
	mantissa, exp, _ := strings.Cut(text, "e")
	if _, frac, _ = strings.Cut(mantissa, "."); len(frac) > f.precision {
		// Do not cut off the shortest digits, because that would round twice.
		mantissa, exp, _ = strings.Cut(strconv.FormatFloat(x, verb, f.precision, 64), "e")
	}
	whole, frac, _ = strings.Cut(mantissa, ".")
	return whole, strings.TrimRight(frac, "0"), exp
}

// floatScalar prints one number as Python does.
func floatScalar(x float64, dt DType) string {
	if math.IsInf(x, 0) || x != x {
		return special(x)
	}
	if a := math.Abs(x); a != 0 && (a < 1e-4 || a >= 1e16) {
		return shortest(x, 'e', dt)
	}
	text := shortest(x, 'f', dt)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func special(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return "nan"
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(width-len(s), 0)) + s
}
