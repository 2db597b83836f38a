package compliance

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// Values of more axes than Millrace's tensors have: every op that takes them, and
// programs with them, give what the Go backend gives.
func TestManyAxesAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(91, 92))
	dims := []int{2, 1, 3, 2, 1, 2, 3, 1, 2, 2}
	n := product(dims)
	squeezed := []int{2, 3, 2, 2, 3, 2, 2} // without the axes of one
	column := slices.Clone(dims)
	column[2], column[3], column[8] = 1, 1, 1
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	x, y := arg{random(r, dtypes.Float32, n), dims}, arg{random(r, dtypes.Float32, n), dims}
	c := arg{random(r, dtypes.Float32, product(column)), column}
	scalar, mask := arg{random(r, dtypes.Float32, 1), nil}, arg{random(r, dtypes.Bool, n), dims}
	flat := arg{random(r, dtypes.Float32, n), []int{n}}
	bits := arg{random(r, dtypes.Int32, n), dims}
	zero := arg{[]float32{}, []int{2, 1, 3, 0, 1, 2, 3, 1, 2, 2}}
	var count tally
	for name, c := range map[string]struct {
		args []arg
		op   fn
	}{
		"itself":       {[]arg{x}, func(f compute.Function, in []value) (value, error) { return in[0], nil }},
		"neg":          {[]arg{x}, call(compute.OpTypeNeg)},
		"no elements":  {[]arg{zero}, call(compute.OpTypeNeg)},
		"add":          {[]arg{x, y}, call(compute.OpTypeAdd)},
		"broadcasting": {[]arg{x, c}, call(compute.OpTypeMul)},
		"both ways":    {[]arg{c, arg{random(r, dtypes.Float32, 6), []int{1, 1, 3, 2, 1, 1, 1, 1, 1, 1}}}, call(compute.OpTypeAdd)},
		"scalar":       {[]arg{x, scalar}, call(compute.OpTypeMax)},
		"less":         {[]arg{x, y}, call(compute.OpTypeLessThan)},
		"finite":       {[]arg{x}, call(compute.OpTypeIsFinite)},
		"where":        {[]arg{mask, x, scalar}, call(compute.OpTypeWhere)},
		"clamp":        {[]arg{scalar, x, y}, call(compute.OpTypeClamp)},
		"convert":      {[]arg{bits}, func(f compute.Function, in []value) (value, error) { return f.ConvertDType(in[0], dtypes.Float32) }},
		"xor":          {[]arg{bits, bits}, call(compute.OpTypeBitwiseXor)},
		"widen":        {[]arg{flat}, func(f compute.Function, in []value) (value, error) { return f.Reshape(in[0], dims...) }},
		"narrow":       {[]arg{x}, func(f compute.Function, in []value) (value, error) { return f.Reshape(in[0], squeezed...) }},
		"other axes": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			return f.Reshape(in[0], 1, 1, 2, 3, 2, 2, 3, 2, 1, 2, 1)
		}},
		"sum":         {[]arg{x}, call(compute.OpTypeReduceSum)},
		"sum of some": {[]arg{x}, func(f compute.Function, in []value) (value, error) { return f.ReduceSum(in[0], 2, 3, 9) }},
		"sum of one":  {[]arg{x}, func(f compute.Function, in []value) (value, error) { return f.ReduceMax(in[0], 6) }},
		"sum of none": {[]arg{x}, func(f compute.Function, in []value) (value, error) { return f.ReduceSum(in[0], 1, 4) }},
		"no maximum":  {[]arg{zero}, func(f compute.Function, in []value) (value, error) { return f.ReduceMax(in[0], 3) }},
		"any":         {[]arg{mask}, func(f compute.Function, in []value) (value, error) { return f.ReduceLogicalOr(in[0], 0, 5) }},
		"transpose": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			return f.Transpose(in[0], 5, 6, 7, 8, 9, 0, 1, 2, 3, 4)
		}},
		"turn around": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			return f.Transpose(in[0], 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
		}},
		"swap": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			return f.Transpose(in[0], 0, 2, 1, 3, 4, 5, 6, 7, 9, 8)
		}},
		"same order":        {[]arg{x}, func(f compute.Function, in []value) (value, error) { return f.Transpose(in[0], all...) }},
		"reverse":           {[]arg{x}, func(f compute.Function, in []value) (value, error) { return f.Reverse(in[0], 0, 2, 3, 9) }},
		"concatenate":       {[]arg{x, y}, func(f compute.Function, in []value) (value, error) { return f.Concatenate(6, in[0], in[1], in[0]) }},
		"at an axis of one": {[]arg{x, y}, func(f compute.Function, in []value) (value, error) { return f.Concatenate(4, in[0], in[1]) }},
		"slice": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			return f.Slice(in[0], []int{1, 0, 0, 0, 0, 0, 1, 0, 0, 0}, []int{2, 1, 3, 2, 1, 2, 3, 1, 2, 2}, []int{1, 1, 2, 1, 1, 1, 1, 1, 1, 1})
		}},
		"slice to nothing": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			return f.Slice(in[0], make([]int, 10), []int{2, 0, 3, 2, 1, 2, 3, 1, 2, 2}, nil)
		}},
		"broadcast": {[]arg{{random(r, dtypes.Float32, 6), []int{3, 2}}}, func(f compute.Function, in []value) (value, error) {
			return f.BroadcastInDim(in[0], shapes.Make(dtypes.Float32, dims...), []int{2, 5})
		}},
		"broadcast of a scalar": {[]arg{scalar}, func(f compute.Function, in []value) (value, error) {
			return f.BroadcastInDim(in[0], shapes.Make(dtypes.Float32, dims...), nil)
		}},
		"broadcast of many": {[]arg{{random(r, dtypes.Float32, product(column)), column}}, func(f compute.Function, in []value) (value, error) {
			return f.BroadcastInDim(in[0], shapes.Make(dtypes.Float32, dims...), all)
		}},
		"iota": {nil, func(f compute.Function, in []value) (value, error) {
			return f.Iota(shapes.Make(dtypes.Int32, dims...), 6)
		}},
		"constant": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			return f.Add(in[0], must(f.Constant(y.flat, dims...)))
		}},
		"softmax": {[]arg{x}, func(f compute.Function, in []value) (value, error) {
			e := must(f.Exp(must(f.Sub(in[0], must(f.Reshape(must(f.ReduceMax(in[0], 9)), append(slices.Clone(dims[:9]), 1)...))))))
			return f.Div(e, must(f.Reshape(must(f.ReduceSum(e, 9)), append(slices.Clone(dims[:9]), 1)...)))
		}},
		"if": {[]arg{x, y}, func(f compute.Function, in []value) (value, error) {
			yes, no := must(f.Closure()), must(f.Closure())
			if err := yes.Return([]value{must(yes.Neg(in[0]))}, nil); err != nil {
				return nil, err
			}
			if err := no.Return([]value{in[1]}, nil); err != nil {
				return nil, err
			}
			list, err := f.If(must(f.LessThan(must(f.ReduceSum(in[0])), must(f.ReduceSum(in[1])))), yes, no)
			return list[0], err
		}},
	} {
		t.Run(name, func(t *testing.T) { count.add(same(t, b, ref, c.args, c.op)) })
	}
	count.check(t, 38, 0)
	// Twelve axes that are all told apart, and ops that have to.
	many := arg{random(r, dtypes.Float32, 1<<12), []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}
	for name, op := range map[string]fn{
		"dot": func(f compute.Function, in []value) (value, error) {
			return f.DotGeneral(in[0], []int{0, 7, 9}, []int{5, 1}, in[0], []int{3, 7, 8}, []int{2, 1}, compute.DotGeneralConfig{})
		},
		"wider than both": func(f compute.Function, in []value) (value, error) {
			five := must(f.Slice(must(f.Reshape(in[0], 128, 2, 2, 2, 2, 2)), make([]int, 6), []int{3, 2, 2, 2, 2, 2}, nil))
			return f.DotGeneral(five, []int{2}, nil, five, []int{4}, nil, compute.DotGeneralConfig{})
		},
		"sum of every other": func(f compute.Function, in []value) (value, error) { return f.ReduceSum(in[0], 0, 2, 4, 6, 8, 10) },
	} {
		t.Run(name, func(t *testing.T) {
			closeTo(t, b, ref, 1e-5, []arg{{uniform(r, dtypes.Float32, 1<<12), many.dims}}, op)
		})
	}
	for range 20 {
		order := r.Perm(12)
		turn := func(f compute.Function, in []value) (value, error) { return f.Transpose(in[0], order...) }
		if compared, _ := same(t, b, ref, []arg{many}, turn); !compared {
			t.Errorf("%v: not compared", order)
		}
	}
	for name, op := range map[string]fn{
		"argmax": func(f compute.Function, in []value) (value, error) { return f.ArgMinMax(in[0], 0, dtypes.Int32, false) },
		"gather": func(f compute.Function, in []value) (value, error) {
			return f.Gather(in[0], must(f.Constant([]int32{1}, 1, 1)), 1, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []int{0}, []int{0}, []int{1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, false)
		},
	} {
		if _, _, err := evaluate(b, []arg{many}, op); !compute.IsNotImplemented(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
