package optable

import (
	"math"
	"slices"
	"sort"

	"github.com/millrace-go/millrace/ir"
)

// Math is the meaning of a function of one number, and the largest error of the float32 op: units
// in the last place, or for composites Abs + Rel*|result|.
type Math struct {
	Ref      func(float64) float64
	Ulps     float64
	Abs, Rel float64
	Special  []float64 // the results at SpecialAt, in every float dtype
}

// SpecialAt are the arguments of Math.Special.
var SpecialAt = []float64{0, negZero, 1, -1, inf, -inf, nan, 1e308, -1e308, -2, 0.5}

var (
	inf, nan = math.Inf(1), math.NaN()
	negZero  = math.Copysign(0, -1)
)

// Elements says which numbers the operands of a reference have.
type Elements int

const (
	Whole   Elements = iota // small whole numbers
	Signs                   // 1 and -1
	Truths                  // 0 and 1
	Real                    // any
	WithNaN                 // small whole numbers, infinities, NaN
)

// Reduction is a fold of rows to one number each, and a loop that does the same.
type Reduction struct {
	Name       string
	DTypes     []ir.DType
	Full       bool // rows must have elements
	Drop, Keep func(x *T, axes ...int) *T
	Of         func(row []float64) float64
	Rounds     bool     // inexact
	Result     ir.DType // if it is not the operand's
	Values     Elements
}

// Along is an op along one axis, and a loop that does the same.
type Along struct {
	Name   string
	DTypes []ir.DType
	Result ir.DType // if it is not the operand's
	Call   func(x *T, axis int) *T
	Of     func(row []float64) []float64
	Values Elements
}

// Norm is a composition along one axis that is one kernel, the same by hand in public ops, and a
// loop that does the same.
type Norm struct {
	Name       string
	Call, Hand func(x *T, axis int) *T
	Of         func(row []float64) []float64
	Full       bool // rows must have elements
}

// Dtypes in the order in which references try them: the first ones with all shapes.
var (
	floats  = []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16}
	numbers = slices.Concat(floats, []ir.DType{ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64})
	bools   = []ir.DType{ir.Bool}
)

func sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// times is x*y with the limit 0 where y vanishes for x = -inf.
func times(x, y float64) float64 {
	if y == 0 {
		return math.Copysign(0, x)
	}
	return x * y
}

// FoldBy folds a row by f.
func FoldBy(start float64, f func(a, b float64) float64) func([]float64) float64 {
	return func(row []float64) float64 {
		r := start
		for _, x := range row {
			r = f(r, x)
		}
		return r
	}
}

// Larger and Smaller give NaN for NaN; math.Max does not if the other operand is an infinity.
func Larger(a, b float64) float64  { return max(a, b) }
func Smaller(a, b float64) float64 { return min(a, b) }

func position(less func(a, b float64) bool) func([]float64) float64 {
	return func(row []float64) float64 {
		best := 0
		for i, x := range row {
			if less(x, row[best]) {
				best = i
			}
		}
		return float64(best)
	}
}

func mean(row []float64) float64 {
	return FoldBy(0, func(a, b float64) float64 { return a + b })(row) / float64(len(row))
}

func variance(ddof int) func(row []float64) float64 {
	return func(row []float64) float64 {
		m, s := mean(row), 0.0
		for _, x := range row {
			s += (x - m) * (x - m)
		}
		return s / max(0, float64(len(row)-ddof))
	}
}

func logSumExp(row []float64) float64 {
	top := slices.Max(row)
	s := 0.0
	for _, x := range row {
		s += math.Exp(x - top)
	}
	return math.Log(s) + top
}

func running(f func(a, b float64) float64) func([]float64) []float64 {
	return func(row []float64) []float64 {
		r := slices.Clone(row)
		for i := 1; i < len(r); i++ {
			r[i] = f(r[i-1], r[i])
		}
		return r
	}
}

func orderOf(descending bool) func([]float64) []float64 {
	return func(row []float64) []float64 {
		order := make([]float64, len(row))
		for i := range order {
			order[i] = float64(i)
		}
		key := func(x float64) float64 {
			switch {
			case math.IsNaN(x):
				return math.Inf(1) // stable: after an infinity only if it was there
			case descending:
				return -x
			}
			return x
		}
		sort.SliceStable(order, func(i, j int) bool {
			a, b := row[int(order[i])], row[int(order[j])]
			if math.IsNaN(a) || math.IsNaN(b) {
				return !math.IsNaN(a)
			}
			return key(a) < key(b)
		})
		return order
	}
}

func sorted(descending bool) func([]float64) []float64 {
	return func(row []float64) []float64 {
		r := make([]float64, len(row))
		for i, o := range orderOf(descending)(row) {
			r[i] = row[int(o)]
		}
		return r
	}
}

func softmax(row []float64) []float64 {
	all := logSumExp(row)
	r := make([]float64, len(row))
	for i, x := range row {
		r[i] = math.Exp(x - all)
	}
	return r
}

func logSoftmax(row []float64) []float64 {
	all := logSumExp(row)
	r := slices.Clone(row)
	for i := range r {
		r[i] -= all
	}
	return r
}

func layerNorm(row []float64) []float64 {
	m, v := mean(row), variance(0)(row)
	r := slices.Clone(row)
	for i := range r {
		r[i] = (r[i] - m) / math.Sqrt(v+1e-3)
	}
	return r
}

func rmsNorm(row []float64) []float64 {
	s := 0.0
	for _, x := range row {
		s += x * x
	}
	r := slices.Clone(row)
	for i := range r {
		r[i] /= math.Sqrt(s/float64(len(row)) + 1e-3)
	}
	return r
}
