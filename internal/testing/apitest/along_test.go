package apitest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
	"github.com/millrace-go/millrace/ir"
)

func withNaN(rng *rand.Rand, shape ...int) array {
	return made(shape, func([]int) float64 {
		if rng.IntN(6) == 0 {
			return []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rng.IntN(3)]
		}
		return float64(rng.IntN(5))
	})
}

func alongs() (all []optable.Along) {
	for _, o := range optable.All() {
		all = append(all, o.Alongs...)
	}
	return all
}

// TestAlongAxesAgainstLoops runs every op that works along one axis, for all axes of the cases.
func TestAlongAxesAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, op := range alongs() {
			for i, c := range rowCases {
				for j, dt := range op.DTypes {
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
					values := elements[op.Values]
					if dt.IsInt() && !dt.IsSigned() {
						values = truths
					}
					result := op.Result
					if result == ir.Invalid {
						result = dt
					}
					given := axis
					if i%2 == 0 {
						given -= len(shape)
					}
					trial{name: fmt.Sprint(op.Name, " along ", given), operands: []operandOf{{values(rng, shape...), dt}}, dt: result,
						call: func(x []*tensor) *tensor { return op.Call(x[0], given) },
						want: func(a []array) array { return a[0].mapped([]int{axis}, op.Of) }}.run(t, dev)
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
					want: head(optable.Named("Tensor.SortDescending").Alongs[0].Of)}.run(t, dev)
				trial{name: fmt.Sprint("positions of topk ", k), operands: []operandOf{{x, ir.Int32}}, dt: ir.Int64,
					call: func(x []*tensor) *tensor { v, p := millrace.TopK(x[0], k, axis); v.Release(); return p },
					want: head(optable.Named("Tensor.ArgSortDescending").Alongs[0].Of)}.run(t, dev)
			}
		}
	})
}
