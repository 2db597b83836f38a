package apitest

import (
	"math"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
)

// limitPrograms are programs that reach one limit of a kernel each: n of the counted things in one
// kernel. Values stay small, and are whole numbers except for kept.
var limitPrograms = []struct {
	name string
	make func(p millrace.Place, n int) []*millrace.Tensor
}{
	{"operands", func(p millrace.Place, n int) []*millrace.Tensor {
		sum := filled(p, 0)
		for i := range n {
			sum = sum.Add(filled(p, i%5))
		}
		return []*millrace.Tensor{sum}
	}},
	{"index operands", func(p millrace.Place, n int) []*millrace.Tensor {
		const size = rowsOf * pointsOf
		x := millrace.ArangeOn(p, millrace.Float32, 0, float64(size+n), 1)
		sum := x.Slice(millrace.R(0, size))
		for i := 1; i < n; i++ { // at another position each time, with so few elements that they are not worth memory
			sum = sum.Add(x.Slice(millrace.R(i, size+i)))
		}
		return []*millrace.Tensor{sum}
	}},
	{"results", func(p millrace.Place, n int) (all []*millrace.Tensor) {
		x := filled(p, 1)
		for range n {
			x = x.Add(x.Abs().Neg()).Add(filled(p, 1))
			all = append(all, x)
		}
		return all
	}},
	{"scalars", func(p millrace.Place, n int) []*millrace.Tensor {
		x := filled(p, 1)
		for i := range n {
			x = x.AddScalar(float64(i%7 + 2)).SubScalar(float64(i%5 + 1)).Abs()
		}
		return []*millrace.Tensor{x}
	}},
	{"instructions", func(p millrace.Place, n int) []*millrace.Tensor {
		x := filled(p, 1)
		for range n { // about fifty instructions each
			x = x.Erf()
		}
		return []*millrace.Tensor{x}
	}},
	{"row ops side by side", func(p millrace.Place, n int) []*millrace.Tensor {
		x, y := filled(p, 1), filled(p, 2)
		sum := x.Sum(1)
		for range n {
			x = x.Sub(y).Abs()
			sum = sum.Add(x.Sum(1))
		}
		return []*millrace.Tensor{sum}
	}},
	{"row ops one behind the other", func(p millrace.Place, n int) []*millrace.Tensor {
		x, y := filled(p, 1), filled(p, 2)
		for range n {
			x = x.Sub(y.Maximum(x.MaxKeep(1))).Abs()
		}
		return []*millrace.Tensor{x}
	}},
	{"row ops and results", func(p millrace.Place, n int) (all []*millrace.Tensor) {
		x, y := filled(p, 1), filled(p, 2)
		for range n {
			x = x.Sub(y).Abs()
			all = append(all, x.Sum(1))
		}
		return append(all, x)
	}},
	{"totals", func(p millrace.Place, n int) []*millrace.Tensor {
		x, y := filled(p, 1), filled(p, 2)
		rows := x.Sub(x.MaxKeep(1))
		sum := rows.Sum()
		for range n {
			x = x.Sub(y).Abs()
			sum = sum.Add(x.Sum())
		}
		return []*millrace.Tensor{rows, sum}
	}},
	{"kept", func(p millrace.Place, n int) []*millrace.Tensor {
		x := filled(p, 1).MulScalar(1.0 / 32)
		sum, all := x.MulScalar(0), []*millrace.Tensor(nil)
		for range min(n, 65) { // more take seconds to plan
			x = x.Sigmoid()
			all, sum = append(all, x), sum.Add(x)
		}
		of := sum.SumKeep(1)
		for _, x := range all {
			sum = sum.Add(x.Div(of))
		}
		return []*millrace.Tensor{sum}
	}},
}

const rowsOf, pointsOf = 16, 64

func filled(p millrace.Place, from int) *millrace.Tensor {
	data := make([]float32, rowsOf*pointsOf)
	for i := range data {
		data[i] = float32((i + from) % 13)
	}
	return millrace.FromSliceOn(p, data, rowsOf, pointsOf)
}

// KernelLimits runs programs that reach the devices' limits for kernels, with the counts in at, on
// d and on a device without fusion. It fails if a plan could not be built, if values differ by more
// than within, or if there is hardly any fusion.
func KernelLimits(t *testing.T, d, unfused *millrace.Device, within float64, at ...int) {
	for _, c := range limitPrograms {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range at {
				before := d.Stats()
				got, err := valuesOf(c.make(d, n))
				if err != nil {
					t.Fatalf("%d: %v", n, err)
				}
				s := d.Stats()
				failed := []int64{s.Fallbacks - before.Fallbacks, s.Runtime.Fallbacks - before.Runtime.Fallbacks, s.Runtime.CompileFails - before.Runtime.CompileFails}
				if slices.Max(failed) > 0 {
					t.Errorf("%d: %v fallbacks of the engine, of the driver, and failed compiles", n, failed)
				}
				if kernels, ops := s.Kernels-before.Kernels, s.Ops-before.Ops; 2*kernels > ops {
					t.Errorf("%d: %d kernels for %d ops", n, kernels, ops)
				}
				want, err := valuesOf(c.make(unfused, n))
				if err != nil {
					t.Fatalf("%d, unfused: %v", n, err)
				}
				for i := range want {
					if math.Abs(float64(got[i]-want[i])) > within*max(1, math.Abs(float64(want[i]))) {
						t.Fatalf("%d: value %d is %g, unfused it is %g", n, i, got[i], want[i])
					}
				}
			}
		})
	}
}

func valuesOf(list []*millrace.Tensor) (all []float32, err error) {
	for _, x := range list {
		v, err := millrace.Values[float32](x)
		if err != nil {
			return nil, err
		}
		all = append(all, v...)
	}
	return all, nil
}
