package apitest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// jumps are the values of a handle that jumps: elements of one value, of several dtypes and shapes,
// on several streams. Rows have 16 elements.
var jumps = []struct {
	value float64
	dt    millrace.DType
	shape []int
}{
	{0, millrace.Float32, []int{16, 16}},
	{200, millrace.Float32, []int{16, 16}},
	{200, millrace.Float32, []int{3, 16}},
	{7, millrace.Float64, []int{5, 2, 16}},
	{-3, millrace.Float64, []int{16, 16}},
	{9, millrace.Float32, []int{16}},
}

// uses are ways to read a handle several times. Each gives a tensor with equal elements for every
// value of the handle, as long as the handle has one value throughout. A mixture of values gives a
// shape that does not fit, a scalar rounded by another dtype, or another number. nil: one of the
// values of jumps.
var uses = map[string]struct {
	f    func(x *tensor) *tensor
	want func(dt millrace.DType) float64
}{
	"softmax":    {func(x *tensor) *tensor { return x.Softmax(-1) }, always(1.0 / 16)},
	"layer norm": {func(x *tensor) *tensor { return x.LayerNorm(nil, nil, 1e-5, -1) }, always(0)},
	"var":        {func(x *tensor) *tensor { return x.Var(-1) }, always(0)},
	"x-x":        {func(x *tensor) *tensor { return x.Sub(x) }, always(0)},
	"x==x":       {func(x *tensor) *tensor { return x.Eq(x).Cast(millrace.Float64) }, always(1)},
	"where":      {func(x *tensor) *tensor { return millrace.Where(millrace.OnesOn(x.Stream(), millrace.Bool), x, x) }, nil},
	"clamp":      {func(x *tensor) *tensor { return x.Clamp(x, x) }, nil},
	"+0.1":       {func(x *tensor) *tensor { return x.ClampScalar(0.1, 0.1) }, tenth},
	"where 0.1": {func(x *tensor) *tensor {
		return millrace.WhereScalar(millrace.ZerosOn(x.Stream(), millrace.Bool), x, 0.1)
	}, tenth},
	"max-0.1":   {func(x *tensor) *tensor { return x.MinimumScalar(-5).MaximumScalar(0.1) }, tenth},
	"pad":       {func(x *tensor) *tensor { return x.Pad(0.1, millrace.Padding{Before: 16, After: -16}) }, tenth},
	"transpose": {func(x *tensor) *tensor { return x.T() }, nil},
	"flip":      {func(x *tensor) *tensor { return x.Flip(-1) }, nil},
	"concat":    {func(x *tensor) *tensor { return millrace.Concat(0, x, x, x) }, nil},
	"stack":     {func(x *tensor) *tensor { return millrace.Stack(0, x, x) }, nil},
	"roll":      {func(x *tensor) *tensor { return x.Roll(3, -1) }, nil},
	"repeat":    {func(x *tensor) *tensor { return x.Repeat(2, -1) }, nil},
	"assign":    {func(x *tensor) *tensor { return x.Assign(x) }, nil},
	"cummax":    {func(x *tensor) *tensor { return x.CumMax(-1) }, nil},
	"reshape":   {func(x *tensor) *tensor { return x.Reshape(-1) }, nil},
	"power":     {func(x *tensor) *tensor { return x.PowInt(5) }, nil},
}

func always(v float64) func(millrace.DType) float64 {
	return func(millrace.DType) float64 { return v }
}

func tenth(dt millrace.DType) float64 {
	if dt == millrace.Float32 {
		return float64(float32(0.1))
	}
	return 0.1
}

// TestHammerSet: Set replaces a shared handle's value while others read it several times: they see
// one value or the next, never a mixture.
func TestHammerSet(t *testing.T) {
	t.Parallel()
	dev := open(t, millrace.Options{Compile: millrace.CompileOff})
	var values []*tensor
	for i, j := range jumps {
		at := []millrace.Place{dev, dev.NewStream()}[i%2]
		values = append(values, millrace.FullOn(at, j.dt, j.value, j.shape...))
	}
	w := values[0].To(dev)
	var names []string
	for name := range uses {
		names = append(names, name)
	}
	hammer(t, 1, dev, func(int) *millrace.Stream { return dev.NewStream() }, func(_ *millrace.Stream, rng *rand.Rand) error {
		if rng.IntN(3) == 0 {
			v := values[rng.IntN(len(values))]
			if rng.IntN(2) == 0 {
				v = v.AddScalar(0) // pending
			}
			w.Set(v)
			return nil
		}
		name := names[rng.IntN(len(names))]
		if err := oneThing(uses[name].f(w), uses[name].want); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	for i, j := range jumps { // all have their old values
		if err := oneThing(values[i], always(j.value)); err != nil {
			t.Error(err)
		}
	}
}

// oneThing reads y, whose elements must all be equal.
func oneThing(y *tensor, want func(millrace.DType) float64) error {
	wide := y.Cast(millrace.Float64)
	got, err := millrace.Values[float64](wide)
	if err != nil {
		return err
	}
	if len(got) == 0 {
		return errors.New("no elements")
	}
	for i, v := range got {
		switch {
		case v != got[0] || math.IsNaN(v):
			return fmt.Errorf("a mixture: element %d is %v, the first is %v", i, v, got[0])
		case want != nil && math.Abs(v-want(y.DType())) > 1e-12 && !(y.DType() == millrace.Float32 && float32(v) == float32(want(y.DType()))):
			return fmt.Errorf("element %d is %v, want %v", i, v, want(y.DType()))
		}
	}
	return nil
}
