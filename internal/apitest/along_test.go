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

type alongAxis struct {
	name   string
	dts    []ir.DType
	result ir.DType
	call   func(t *tensor, axis int) *tensor
	of     func(row []float64) []float64
	values func(rng *rand.Rand, shape ...int) array
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

// larger and smaller give NaN for NaN; math.Max does not if the other operand is an infinity.
func larger(a, b float64) float64  { return max(a, b) }
func smaller(a, b float64) float64 { return min(a, b) }

func withNaN(rng *rand.Rand, shape ...int) array {
	return made(shape, func([]int) float64 {
		if rng.IntN(6) == 0 {
			return []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)]
		}
		return float64(rng.IntN(5))
	})
}

var alongs = []alongAxis{
	{name: "cumsum", dts: numbers, call: (*tensor).CumSum, of: running(func(a, b float64) float64 { return a + b })},
	{name: "cumprod", dts: numbers, call: (*tensor).CumProd, of: running(func(a, b float64) float64 { return a * b }), values: signs},
	{name: "cummax", dts: numbers, call: (*tensor).CumMax, of: running(larger)},
	{name: "cummin", dts: numbers, call: (*tensor).CumMin, of: running(smaller)},
	{name: "sort", dts: numbers, call: (*tensor).Sort, of: sorted(false)},
	{name: "sort descending", dts: numbers, call: (*tensor).SortDescending, of: sorted(true)},
	{name: "argsort", dts: numbers, result: ir.Int64, call: (*tensor).ArgSort, of: orderOf(false)},
	{name: "argsort descending", dts: numbers, result: ir.Int64, call: (*tensor).ArgSortDescending, of: orderOf(true)},
	{name: "argsort32", dts: numbers, result: ir.Int32, call: func(t *tensor, a int) *tensor { return t.ArgSortAs(millrace.Int32, a, true) }, of: orderOf(true)},
	{name: "cummax of NaN", dts: floats, call: (*tensor).CumMax, of: running(larger), values: withNaN},
	{name: "sort of NaN", dts: floats, call: (*tensor).Sort, of: sorted(false), values: withNaN},
	{name: "sort descending of NaN", dts: floats, call: (*tensor).SortDescending, of: sorted(true), values: withNaN},
	{name: "argsort of NaN", dts: floats, result: ir.Int64, call: (*tensor).ArgSort, of: orderOf(false), values: withNaN},
	{name: "argsort descending of NaN", dts: floats, result: ir.Int64, call: (*tensor).ArgSortDescending, of: orderOf(true), values: withNaN},
}

// TestAlongAxesAgainstLoops runs every op that works along one axis, for all axes of the cases.
func TestAlongAxesAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, op := range alongs {
			for i, c := range rowCases {
				for j, dt := range op.dts {
					if len(c.shape) == 0 || j > 0 && (i+j)%4 != 0 {
						continue
					}
					axis := (i + j) % len(c.shape)
					shape := slices.Clone(c.shape)
					if dt.Bits() < 32 { // keeps sums exact and in range
						for d := range shape {
							shape[d] = min(shape[d], 13)
						}
					}
					values := op.values
					switch {
					case dt.IsInt() && !dt.IsSigned():
						values = truths
					case values == nil:
						values = whole
					}
					result := op.result
					if result == ir.Invalid {
						result = dt
					}
					given := axis
					if i%2 == 0 {
						given -= len(shape)
					}
					trial{name: fmt.Sprint(op.name, " along ", given), operands: []operandOf{{values(rng, shape...), dt}}, dt: result,
						call: func(x []*tensor) *tensor { return op.call(x[0], given) },
						want: func(a []array) array { return a[0].mapped([]int{axis}, op.of) }}.run(t, dev)
				}
			}
		}
	})
}

func TestTopKAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(1, 3))
		for _, k := range []int{0, 1, 3, 5} {
			for axis := range 2 {
				x := whole(rng, 5, 6)
				head := func(order func([]float64) []float64) func(a []array) array {
					return func(a []array) array {
						all := a[0].mapped([]int{axis}, order)
						shape := with(all.shape, axis, k)
						return made(shape, func(at []int) float64 { return all.get(at...) })
					}
				}
				trial{name: fmt.Sprint("topk ", k), operands: []operandOf{{x, ir.Float32}}, dt: ir.Float32,
					call: func(x []*tensor) *tensor { v, p := millrace.TopK(x[0], k, axis-2); p.Release(); return v },
					want: head(sorted(true))}.run(t, dev)
				trial{name: fmt.Sprint("positions of topk ", k), operands: []operandOf{{x, ir.Int32}}, dt: ir.Int64,
					call: func(x []*tensor) *tensor { v, p := millrace.TopK(x[0], k, axis); v.Release(); return p },
					want: head(orderOf(true))}.run(t, dev)
			}
		}
	})
}
