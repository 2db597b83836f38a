//go:build go1.27 && !compute_go126

package gomlxbackend

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

func TestNativeShapes(t *testing.T) {
	if c := openBackend(t, "cpu").Capabilities(); c.DynamicShapes != compute.DynamicShapesNative || c.DynamicDimDType != dtypes.Int64 {
		t.Errorf("dynamic shapes %v of %v", c.DynamicShapes, c.DynamicDimDType)
	}
}

func TestBadLater(t *testing.T) {
	b := openBackend(t, "cpu")
	f := b.Builder("bad").Main()
	type value = compute.Value
	param := func(dt dtypes.DType, dims ...int) value { return must(f.Parameter("x", shapes.Make(dt, dims...), nil)) }
	x23, x32, x33, x2, i23 := param(dtypes.Float32, 2, 3), param(dtypes.Float32, 3, 2), param(dtypes.Float32, 3, 3), param(dtypes.Float32, 2), param(dtypes.Int32, 2, 3)
	activation := func(a compute.ActivationType) compute.ActivationConfig { return compute.ActivationConfig{Type: a} }
	dense := func(x, w, bias, y, d value, a compute.ActivationType) func() (value, error) {
		return func() (value, error) {
			v, _, _, err := f.FusedDenseVJP(x, w, bias, y, d, denseEnding(a))
			return v, err
		}
	}
	const relu = compute.ActivationRelu
	for _, c := range []struct {
		op   string
		want []string
		do   func() (value, error)
	}{
		{"CumSum", []string{"Float32)[2, 3]", "axis 2"}, func() (value, error) { return f.CumSum(x23, 2, compute.CumSumOptions{}) }},
		{"CumSum", []string{"axis -1"}, func() (value, error) { return f.CumSum(x23, -1, compute.CumSumOptions{}) }},
		{"CumSum", []string{"Bool)[2]"}, func() (value, error) { return f.CumSum(param(dtypes.Bool, 2), 0, compute.CumSumOptions{}) }},
		{"CumSum", []string{"scalar"}, func() (value, error) { return f.CumSum(param(dtypes.Float32), 0, compute.CumSumOptions{}) }},
		{"Slice", []string{"Float32)[2, 3]", "axis 1"}, func() (value, error) { return f.Slice(x23, []int{0, 0}, []int{2, 4}, nil) }},
		{"Slice", []string{"Float32)[2, 3]", "axis 0"}, func() (value, error) { return f.Slice(x23, []int{-3, 0}, []int{2, 3}, nil) }},
		{"FusedActivation", []string{"Int32)[2, 3]"}, func() (value, error) { return f.FusedActivation(i23, activation(relu)) }},
		{"FusedActivation", []string{"Float32)[2, 3]", "even"}, func() (value, error) { return f.FusedActivation(x23, activation(compute.ActivationSwiGLU)) }},
		{"FusedActivation", []string{"operand 0"}, func() (value, error) { return f.FusedActivation(nil, activation(relu)) }},
		{"FusedActivationVJP", []string{"Float32)[2, 3]", "Float32)[3, 2]"}, func() (value, error) { return f.FusedActivationVJP(x23, x23, x32, activation(relu)) }},
		{"FusedActivationVJP", []string{"requires input x"}, func() (value, error) {
			return f.FusedActivationVJP(x23, nil, x23, activation(compute.ActivationGelu))
		}},
		{"FusedActivationVJP", []string{"at least one"}, func() (value, error) { return f.FusedActivationVJP(nil, nil, x23, activation(relu)) }},
		{"FusedActivationVJP", []string{"Int32)[2, 3]"}, func() (value, error) { return f.FusedActivationVJP(i23, nil, i23, activation(relu)) }},
		{"FusedDenseVJP", []string{"Float32)[2, 3]", "Float32)[3, 3]"}, dense(x23, x33, nil, x23, x32, relu)},
		{"FusedDenseVJP", []string{"Gelu"}, dense(x23, x33, nil, x23, x23, compute.ActivationGelu)},
		{"FusedDenseVJP", []string{"bias", "Float32)[2]"}, dense(x23, x33, x2, x23, x23, relu)},
		{"FusedDenseVJP", []string{"operand 2"}, dense(x23, x33, nil, nil, x23, relu)},
	} {
		v, err := c.do()
		if err == nil || v != nil {
			t.Errorf("%s, %q: %v, %v", c.op, c.want, v, err)
			continue
		}
		for _, want := range append(c.want, c.op) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.op, err, want)
			}
		}
		if compute.IsNotImplemented(err) {
			t.Errorf("%s: %q says that the op is missing", c.op, err)
		}
	}
	if _, err := f.FusedActivation(x23, activation(99)); !compute.IsNotImplemented(err) {
		t.Errorf("an unknown activation: %v", err)
	}
}
