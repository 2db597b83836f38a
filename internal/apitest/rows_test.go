package apitest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// rowCases are shapes with axes along which rows are taken.
var rowCases = []struct {
	shape []int
	axes  []int // as called: nil means all, negative ones count from the last
}{
	{[]int{}, nil},
	{[]int{1}, []int{0}},
	{[]int{7}, nil},
	{[]int{300}, []int{-1}},
	{[]int{5, 4}, []int{0}},
	{[]int{5, 4}, []int{1}},
	{[]int{3, 70, 2}, []int{1}},
	{[]int{3, 70, 2}, []int{-1, 0}},
	{[]int{2, 3, 4}, nil},
	{[]int{4097, 2}, []int{0}},
	{[]int{2, 4100}, []int{1}},
	{[]int{2, 1, 2, 1, 3, 1, 2, 2}, []int{4, 7, 0}},
	{[]int{2, 1, 2, 1, 3, 1, 2, 2}, nil},
	{[]int{0, 3}, []int{1}},
	{[]int{3, 0}, []int{1}},
	{[]int{2, 0, 3}, []int{0, 2}},
	{[]int{0}, nil},
}

// resolved converts axes to the oracle's form.
func resolved(axes []int, rank int) []int {
	var r []int
	for _, a := range axes {
		if a < 0 {
			a += rank
		}
		r = append(r, a)
	}
	if axes == nil {
		for i := range rank {
			r = append(r, i)
		}
	}
	sort.Ints(r)
	return r
}

func emptyRows(shape, axes []int) bool {
	return slices.ContainsFunc(axes, func(a int) bool { return shape[a] == 0 })
}

type reduction struct {
	name       string
	dts        []ir.DType
	full       bool // rows must have elements
	drop, keep func(t *tensor, axes ...int) *tensor
	of         func(row []float64) float64
	rounds     bool // inexact
	result     ir.DType
	values     func(rng *rand.Rand, shape ...int) array
}

func fold(start float64, f func(a, b float64) float64) func([]float64) float64 {
	return func(row []float64) float64 {
		r := start
		for _, x := range row {
			r = f(r, x)
		}
		return r
	}
}

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
	return fold(0, func(a, b float64) float64 { return a + b })(row) / float64(len(row))
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

func signs(rng *rand.Rand, shape ...int) array {
	return made(shape, func([]int) float64 { return []float64{1, 1, 1, 1, -1, 1}[rng.IntN(6)] })
}

func truths(rng *rand.Rand, shape ...int) array { return natural(rng, 2, shape...) }

var reductions = []reduction{
	{name: "sum", dts: numbers, drop: (*tensor).Sum, keep: (*tensor).SumKeep, of: fold(0, func(a, b float64) float64 { return a + b })},
	{name: "prod", dts: numbers, drop: (*tensor).Prod, keep: (*tensor).ProdKeep, of: fold(1, func(a, b float64) float64 { return a * b }), values: signs},
	{name: "max", dts: numbers, full: true, drop: (*tensor).Max, keep: (*tensor).MaxKeep, of: func(r []float64) float64 { return slices.Max(r) }},
	{name: "min", dts: numbers, full: true, drop: (*tensor).Min, keep: (*tensor).MinKeep, of: func(r []float64) float64 { return slices.Min(r) }},
	{name: "any", dts: []ir.DType{ir.Bool}, drop: (*tensor).Any, keep: (*tensor).AnyKeep, of: fold(0, math.Max), values: truths},
	{name: "all", dts: []ir.DType{ir.Bool}, drop: (*tensor).All, keep: (*tensor).AllKeep, of: fold(1, math.Min), values: truths},
	{name: "argmax", dts: numbers, full: true, drop: (*tensor).ArgMax, of: position(func(a, b float64) bool { return a > b }), result: ir.Int64},
	{name: "argmin", dts: numbers, full: true, drop: (*tensor).ArgMin, of: position(func(a, b float64) bool { return a < b }), result: ir.Int64},
	{name: "argmax32", dts: numbers, full: true, drop: func(t *tensor, axes ...int) *tensor { return t.ArgMaxAs(millrace.Int32, axes...) }, of: position(func(a, b float64) bool { return a > b }), result: ir.Int32},
	{name: "argmin32", dts: numbers, full: true, drop: func(t *tensor, axes ...int) *tensor { return t.ArgMinAs(millrace.Int32, axes...) }, of: position(func(a, b float64) bool { return a < b }), result: ir.Int32},
	{name: "mean", dts: floats, drop: (*tensor).Mean, keep: (*tensor).MeanKeep, of: mean, rounds: true, values: real},
	{name: "var0", dts: floats, drop: func(t *tensor, axes ...int) *tensor { return t.Var(0, axes...) }, keep: func(t *tensor, axes ...int) *tensor { return t.VarKeep(0, axes...) }, of: variance(0), rounds: true, values: real},
	{name: "var1", dts: floats, drop: func(t *tensor, axes ...int) *tensor { return t.Var(1, axes...) }, keep: func(t *tensor, axes ...int) *tensor { return t.VarKeep(1, axes...) }, of: variance(1), rounds: true, values: real},
	{name: "std", dts: floats, drop: func(t *tensor, axes ...int) *tensor { return t.Std(1, axes...) }, keep: func(t *tensor, axes ...int) *tensor { return t.StdKeep(1, axes...) }, of: func(r []float64) float64 { return math.Sqrt(variance(1)(r)) }, rounds: true, values: real},
	{name: "logsumexp", dts: floats, full: true, drop: (*tensor).LogSumExp, keep: (*tensor).LogSumExpKeep, of: logSumExp, rounds: true, values: real},
	{name: "norm1", dts: floats, drop: (*tensor).Norm1, keep: (*tensor).Norm1Keep, of: fold(0, func(a, b float64) float64 { return a + math.Abs(b) }), rounds: true, values: real},
	{name: "norm2", dts: floats, drop: (*tensor).Norm2, keep: (*tensor).Norm2Keep, of: func(r []float64) float64 { return math.Sqrt(fold(0, func(a, b float64) float64 { return a + b*b })(r)) }, rounds: true, values: real},
}

// TestReductionsAgainstLoops runs every reduction, over every case's axes, in every dtype it takes.
func TestReductionsAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(1, 1))
		for _, op := range reductions {
			for i, c := range rowCases {
				axes := resolved(c.axes, len(c.shape))
				if op.full && emptyRows(c.shape, axes) {
					continue // an error: see the tests of bad input
				}
				// Every dtype somewhere, the first ones everywhere.
				for j, dt := range op.dts {
					if j > 1 && (i+j)%5 != 0 {
						continue
					}
					op.trial(rng, c.shape, c.axes, axes, dt, false).run(t, dev)
					if op.keep != nil {
						op.trial(rng, c.shape, c.axes, axes, dt, true).run(t, dev)
					}
				}
			}
		}
	})
}

func (op reduction) trial(rng *rand.Rand, shape, given, axes []int, dt ir.DType, keep bool) trial {
	values := op.values
	switch {
	case dt.IsInt() && !dt.IsSigned():
		values = truths
	case values == nil:
		values = whole
	}
	result, tol, f := op.result, 0.0, op.drop
	if result == ir.Invalid {
		result = dt
	}
	if op.rounds {
		tol = 4 * tolerance(dt)
	}
	if keep {
		f = op.keep
	}
	if dt.Bits() < 32 && dt != ir.Bool {
		// Few elements keep sums exact and in range.
		shape = slices.Clone(shape)
		for i := range shape {
			shape[i] = min(shape[i], 13)
		}
	}
	return trial{name: fmt.Sprintf("%s over %v, keep %v", op.name, given, keep), operands: []operandOf{{values(rng, shape...), dt}}, dt: result, tol: tol,
		call: func(x []*tensor) *tensor { return f(x[0], given...) },
		want: func(a []array) array { return a[0].folded(axes, keep, op.of) }}
}
