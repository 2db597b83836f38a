package apitest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
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

// elements make the operands of optable's references.
var elements = map[optable.Elements]func(rng *rand.Rand, shape ...int) array{
	optable.Whole: whole, optable.Signs: signs, optable.Truths: truths, optable.Real: real, optable.WithNaN: withNaN,
}

func signs(rng *rand.Rand, shape ...int) array {
	return made(shape, func([]int) float64 { return []float64{1, 1, 1, 1, -1, 1}[rng.IntN(6)] })
}

func truths(rng *rand.Rand, shape ...int) array { return natural(rng, 2, shape...) }

func reductions() (all []optable.Reduction) {
	for _, o := range optable.All() {
		all = append(all, o.Reductions...)
	}
	return all
}

// TestReductionsAgainstLoops runs every reduction, over every case's axes, in every dtype it takes.
func TestReductionsAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(1, 1))
		for _, op := range reductions() {
			for i, c := range rowCases {
				axes := resolved(c.axes, len(c.shape))
				if op.Full && emptyRows(c.shape, axes) {
					continue // an error: see the tests of bad input
				}
				// Every dtype somewhere, the first ones everywhere.
				for j, dt := range op.DTypes {
					if j > 1 && (i+j)%5 != 0 {
						continue
					}
					reductionTrial(op, rng, c.shape, c.axes, axes, dt, false).run(t, dev)
					if op.Keep != nil {
						reductionTrial(op, rng, c.shape, c.axes, axes, dt, true).run(t, dev)
					}
				}
			}
		}
	})
}

func reductionTrial(op optable.Reduction, rng *rand.Rand, shape, given, axes []int, dt ir.DType, keep bool) trial {
	values := elements[op.Values]
	if dt.IsInt() && !dt.IsSigned() {
		values = truths
	}
	result, tol, f := op.Result, 0.0, op.Drop
	if result == ir.Invalid {
		result = dt
	}
	if op.Rounds {
		tol = 4 * tolerance(dt)
	}
	if keep {
		f = op.Keep
	}
	if dt.Bits() < 32 && dt != ir.Bool {
		// Few elements keep sums exact and in range.
		shape = slices.Clone(shape)
		for i := range shape {
			shape[i] = min(shape[i], 13)
		}
	}
	return trial{name: fmt.Sprintf("%s over %v, keep %v", op.Name, given, keep), operands: []operandOf{{values(rng, shape...), dt}}, dt: result, tol: tol,
		call: func(x []*tensor) *tensor { return f(x[0], given...) },
		want: func(a []array) array { return a[0].folded(axes, keep, op.Of) }}
}
