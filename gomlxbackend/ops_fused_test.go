package gomlxbackend

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// A fused op in a graph that has its decomposed form adds nothing.
func TestFusedIsDecomposed(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	f := b.Builder("both").Main().(*Function)
	type value = compute.Value
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 4, 6), nil))
	w := must(f.Parameter("w", shapes.Make(dtypes.Float32, 6, 3), nil))
	bias := must(f.Parameter("b", shapes.Make(dtypes.Float32, 3), nil))
	number := func(x float64) value { return must(f.Constant([]float32{float32(x)})) }
	keep := func(v value) value { return must(f.Reshape(v, 4, 1)) }
	mean := func(v value) value { return keep(must(f.Mul(must(f.ReduceSum(v, 1)), number(1.0/6)))) }
	for name, c := range map[string]struct{ decomposed, fused func() value }{
		"softmax": {func() value {
			e := must(f.Exp(must(f.Sub(x, keep(must(f.ReduceMax(x, 1)))))))
			return must(f.Div(e, keep(must(f.ReduceSum(e, 1)))))
		}, func() value { return must(f.FusedSoftmax(x, 1)) }},
		"gelu": {func() value {
			return must(f.Mul(x, must(f.Mul(must(f.Add(must(f.Erf(must(f.Mul(x, number(1/math.Sqrt2))))), number(1))), number(0.5)))))
		}, func() value { return must(f.FusedGelu(x, true)) }},
		"layer norm": {func() value {
			c := must(f.Sub(x, mean(x)))
			return must(f.Div(c, must(f.Sqrt(must(f.Add(mean(must(f.Mul(c, c))), number(1e-6)))))))
		}, func() value { return must(f.FusedLayerNorm(x, []int{1}, 1e-6, nil, nil)) }},
		"dense": {func() value {
			y := must(f.DotGeneral(x, []int{1}, nil, w, []int{0}, nil, compute.DotGeneralConfig{}))
			return must(f.Tanh(must(f.Add(y, must(f.Reshape(bias, 1, 3))))))
		}, func() value {
			return must(f.FusedDense(x, w, bias, denseEnding(compute.ActivationTanh)))
		}},
	} {
		want := c.decomposed()
		n := len(f.nodes)
		if got := c.fused(); got != want || len(f.nodes) != n {
			t.Errorf("%s: %d new nodes", name, len(f.nodes)-n)
		}
	}
}

func TestBadFused(t *testing.T) {
	b := openBackend(t, "cpu")
	f := b.Builder("bad").Main().(*Function)
	type value = compute.Value
	param := func(dt dtypes.DType, dims ...int) value { return must(f.Parameter("x", shapes.Make(dt, dims...), nil)) }
	x23, x32, x4, i23, s := param(dtypes.Float32, 2, 3), param(dtypes.Float32, 3, 2), param(dtypes.Float32, 4), param(dtypes.Int8, 2, 3), param(dtypes.Float32)
	dense := func(x, w, bias value, c compute.DenseConfig) func() (value, error) {
		return func() (value, error) { return f.FusedDense(x, w, bias, c) }
	}
	quantized := func(x, w, bias value, q *compute.Quantization) func() (value, error) {
		return func() (value, error) { return f.FusedQuantizedDense(x, w, bias, q, compute.ActivationNone) }
	}
	q := func(scale, zero value, scheme compute.QuantizationScheme, axis, block int) *compute.Quantization {
		return &compute.Quantization{Scheme: scheme, Scale: scale, ZeroPoint: zero, BlockAxis: axis, BlockSize: block}
	}
	scale := param(dtypes.Float32, 2, 1)
	for _, c := range []struct {
		name string
		want string
		do   func() (value, error)
	}{
		{"FusedSoftmax", "axis 2", func() (value, error) { return f.FusedSoftmax(x23, 2) }},
		{"FusedSoftmax", "axis -1", func() (value, error) { return f.FusedSoftmax(x23, -1) }},
		{"FusedSoftmax", "Int8", func() (value, error) { return f.FusedSoftmax(i23, 1) }},
		{"FusedSoftmax", "operand 0", func() (value, error) { return f.FusedSoftmax(nil, 1) }},
		{"FusedGelu", "Int8", func() (value, error) { return f.FusedGelu(i23, true) }},
		{"FusedLayerNorm", "axis 2", func() (value, error) { return f.FusedLayerNorm(x23, []int{2}, 1e-5, nil, nil) }},
		{"FusedLayerNorm", "Int8", func() (value, error) { return f.FusedLayerNorm(i23, []int{1}, 1e-5, nil, nil) }},
		{"FusedLayerNorm", "Float32)[4]", func() (value, error) { return f.FusedLayerNorm(x23, []int{1}, 1e-5, x4, nil) }},
		{"FusedLayerNorm", "Float32)[4]", func() (value, error) { return f.FusedLayerNorm(x23, []int{1}, 1e-5, nil, x4) }},
		{"FusedLayerNorm", "Float32)[3, 2]", func() (value, error) { return f.FusedLayerNorm(x23, []int{1}, 1e-5, x32, nil) }},
		{"FusedDense", "3 features", dense(x23, x23, nil, compute.DenseConfig{})},
		{"FusedDense", "Float32)[4]", dense(x23, x32, x4, compute.DenseConfig{})},
		{"FusedDense", "one axis", dense(s, x32, nil, compute.DenseConfig{})},
		{"FusedDense", "two", dense(x23, x4, nil, compute.DenseConfig{})},
		{"FusedDense", "operand 1", dense(x23, nil, nil, compute.DenseConfig{})},
		{"FusedDense", "layout", dense(x23, x32, nil, compute.DenseConfig{WeightLayout: 7})},
		{"FusedQuantizedDense", "quantization", quantized(x32, i23, nil, nil)},
		{"FusedQuantizedDense", "last of x", quantized(x23, i23, nil, q(scale, nil, compute.QuantLinear, 1, 3))},
		{"FusedQuantizedDense", "integers", quantized(x32, x23, nil, q(scale, nil, compute.QuantLinear, 1, 3))},
		{"FusedQuantizedDense", "axis 0", quantized(x32, i23, nil, q(scale, nil, compute.QuantLinear, 0, 3))},
		{"FusedQuantizedDense", "blocks of 0", quantized(x32, i23, nil, q(scale, nil, compute.QuantLinear, 1, 0))},
		{"FusedQuantizedDense", "[2, 2]", quantized(x32, i23, nil, q(scale, nil, compute.QuantLinear, 1, 2))},
		{"FusedQuantizedDense", "zero point", quantized(x32, i23, nil, q(scale, scale, compute.QuantNF4, 1, 3))},
		{"FusedQuantizedDense", "operand 2", quantized(x32, i23, nil, q(nil, nil, compute.QuantLinear, 1, 3))},
		{"FusedAttentionQKVProjection", "Float32)[3, 2]", func() (value, error) {
			v, _, _, err := f.FusedAttentionQKVProjection(x23, x32, nil, nil, nil, 1, 1)
			return v, err
		}},
	} {
		v, err := c.do()
		switch {
		case err == nil:
			t.Errorf("%s, %s: no error", c.name, c.want)
		case v != nil:
			t.Errorf("%s: a value beside the error", c.name)
		case !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %q does not say %q", c.name, err, c.want)
		case compute.IsNotImplemented(err):
			t.Errorf("%s: %q says that the op is missing", c.name, err)
		}
	}
	if _, err := f.FusedDense(x23, x32, nil, denseEnding(99)); !compute.IsNotImplemented(err) {
		t.Errorf("an unknown activation: %v", err)
	}
	if _, err := f.FusedQuantizedDense(x32, i23, nil, q(nil, nil, compute.QuantGGML, 1, 2), compute.ActivationNone); err == nil || !strings.Contains(err.Error(), "FusedQuantizedDense") || compute.IsNotImplemented(err) {
		t.Errorf("GGML: %v", err)
	}
}
