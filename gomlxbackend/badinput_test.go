package gomlxbackend

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
)

// Each bad call returns an error that names the op and the shapes, and none
// that says the op is missing.
func TestBadInput(t *testing.T) {
	b := openBackend(t, "cpu")
	f := b.Builder("bad").Main()
	param := func(dt dtypes.DType, dims ...int) compute.Value {
		return must(f.Parameter("x", shapes.Make(dt, dims...), nil))
	}
	x23, x32, i2, m2 := param(dtypes.Float32, 2, 3), param(dtypes.Float32, 3, 2), param(dtypes.Int32, 2), param(dtypes.Bool, 2)
	s, u2, zero := param(dtypes.Float32), param(dtypes.Uint8, 2), param(dtypes.Float32, 0)
	i0, i32, column, x33 := param(dtypes.Int32), param(dtypes.Int32, 3, 2), param(dtypes.Float32, 2, 1), param(dtypes.Float32, 3, 3)
	type value = compute.Value
	cases := []struct {
		name string
		want []string
		do   func() (value, error)
	}{
		{"Add", []string{"Float32)[2, 3]", "Float32)[3, 2]"}, func() (value, error) { return f.Add(x23, x32) }},
		{"Add", []string{"Float32", "Int32)[2]"}, func() (value, error) { return f.Add(x23, i2) }},
		{"Add", []string{"Bool)[2]"}, func() (value, error) { return f.Add(m2, m2) }},
		{"Max", []string{"Bool)[2]"}, func() (value, error) { return f.Max(m2, m2) }},
		{"Atan2", []string{"Int32)[2]"}, func() (value, error) { return f.Atan2(i2, i2) }},
		{"LogicalAnd", []string{"Int32)[2]"}, func() (value, error) { return f.LogicalAnd(i2, i2) }},
		{"BitwiseXor", []string{"Float32)[2, 3]"}, func() (value, error) { return f.BitwiseXor(x23, x23) }},
		{"ShiftLeft", []string{"Float32)[2, 3]"}, func() (value, error) { return f.ShiftLeft(x23, x23) }},
		{"Equal", []string{"Float32", "Int32"}, func() (value, error) { return f.Equal(x23, i2) }},
		{"Exp", []string{"Int32)[2]"}, func() (value, error) { return f.Exp(i2) }},
		{"Neg", []string{"Uint8)[2]"}, func() (value, error) { return f.Neg(u2) }},
		{"LogicalNot", []string{"Int32)[2]"}, func() (value, error) { return f.LogicalNot(i2) }},
		{"IsFinite", []string{"Int32)[2]"}, func() (value, error) { return f.IsFinite(i2) }},
		{"Where", []string{"Float32)[2, 3]"}, func() (value, error) { return f.Where(x23, x23, x23) }},
		{"Where", []string{"Float32)[2, 3]", "Float32)[3, 2]"}, func() (value, error) { return f.Where(m2, x23, x32) }},
		{"Clamp", []string{"Float32)[3, 2]"}, func() (value, error) { return f.Clamp(s, x23, x32) }},
		{"Reshape", []string{"Float32)[2, 3]", "[4 2]"}, func() (value, error) { return f.Reshape(x23, 4, 2) }},
		{"Reshape", []string{"-6"}, func() (value, error) { return f.Reshape(x23, -6) }},
		{"Transpose", []string{"Float32)[2, 3]"}, func() (value, error) { return f.Transpose(x23, 0, 0) }},
		{"BroadcastInDim", []string{"Float32)[2, 3]"}, func() (value, error) {
			return f.BroadcastInDim(x23, shapes.Make(dtypes.Float32, 2, 4), []int{0, 1})
		}},
		{"BroadcastInDim", []string{"Float32)[2, 3]", "Int32"}, func() (value, error) {
			return f.BroadcastInDim(x23, shapes.Make(dtypes.Int32, 2, 3), []int{0, 1})
		}},
		{"BroadcastInDim", []string{"increase"}, func() (value, error) {
			return f.BroadcastInDim(x23, shapes.Make(dtypes.Float32, 3, 2), []int{1, 0})
		}},
		{"Slice", []string{"Float32)[2, 3]"}, func() (value, error) { return f.Slice(x23, []int{0}, []int{1}, nil) }},
		{"Slice", []string{"Float32)[2, 3]"}, func() (value, error) { return f.Slice(x23, []int{2, 2}, []int{2, 1}, nil) }},
		{"Reverse", []string{"axis 2", "Float32)[2, 3]"}, func() (value, error) { return f.Reverse(x23, 2) }},
		{"Concatenate", []string{"Float32)[2, 3]", "Float32)[3, 2]"}, func() (value, error) { return f.Concatenate(0, x23, x32) }},
		{"Concatenate", nil, func() (value, error) { return f.Concatenate(0) }},
		{"Pad", []string{"Int32)[2]"}, func() (value, error) { return f.Pad(x23, i2) }},
		{"Pad", []string{"Float32)[2, 3]"}, func() (value, error) { return f.Pad(x23, s, compute.PadAxis{Start: -3}) }},
		{"Pad", []string{"Float32)[2, 3]"}, func() (value, error) { return f.Pad(x23, s, compute.PadAxis{Interior: -1}) }},
		{"ReduceSum", []string{"axis 2", "Float32)[2, 3]"}, func() (value, error) { return f.ReduceSum(x23, 2) }},
		{"ReduceSum", []string{"[0 0]"}, func() (value, error) { return f.ReduceSum(x23, 0, 0) }},
		{"ReduceMax", []string{"Bool)[2]"}, func() (value, error) { return f.ReduceMax(m2) }},
		{"ReduceLogicalAnd", []string{"Int32)[2]"}, func() (value, error) { return f.ReduceLogicalAnd(i2) }},
		{"ReduceBitwiseOr", []string{"Float32)[2, 3]"}, func() (value, error) { return f.ReduceBitwiseOr(x23) }},
		{"ArgMinMax", []string{"Float32)[2, 3]", "axis 2"}, func() (value, error) { return f.ArgMinMax(x23, 2, dtypes.Int32, true) }},
		{"ArgMinMax", []string{"Float32)[0]"}, func() (value, error) { return f.ArgMinMax(zero, 0, dtypes.Int32, true) }},
		{"ArgMinMax", []string{"Float32"}, func() (value, error) { return f.ArgMinMax(x23, 0, dtypes.Float32, true) }},
		{"FusedDense", []string{"Float32)[2, 3]", "Int32)[3, 2]"}, func() (value, error) {
			return f.FusedDense(x23, i32, nil, denseEnding(compute.ActivationGelu))
		}},
		{"FusedDense", []string{"bias", "Float32)[2, 1]"}, func() (value, error) {
			return f.FusedDense(x23, x32, column, compute.DenseConfig{})
		}},
		{"FusedAttentionQKVProjection", []string{"bias", "Float32)[2, 3]"}, func() (value, error) {
			v, _, _, err := f.FusedAttentionQKVProjection(x23, x33, x23, nil, nil, 1, 1)
			return v, err
		}},
		{"DotGeneral", []string{"Float32)[2, 3]", "Float32)[3, 2]"}, func() (value, error) {
			return f.DotGeneral(x23, []int{0}, nil, x32, []int{0}, nil, compute.DotGeneralConfig{})
		}},
		{"DotGeneral", []string{"Bool)[2]"}, func() (value, error) {
			return f.DotGeneral(m2, []int{0}, nil, m2, []int{0}, nil, compute.DotGeneralConfig{})
		}},
		{"Gather", []string{"Float32)[2, 3]"}, func() (value, error) {
			return f.Gather(x23, i2, 1, []int{1}, []int{0}, []int{0}, []int{1, 4}, false)
		}},
		{"Gather", []string{"Float32)[2, 3]", "integers"}, func() (value, error) {
			return f.Gather(x23, s, 0, []int{0}, []int{0}, []int{0}, []int{1, 3}, false)
		}},
		{"Gather", []string{"Int32)[2]", "[0 0]"}, func() (value, error) {
			return f.Gather(x23, i2, 0, []int{0}, []int{0}, []int{0, 0}, []int{1, 3}, false)
		}},
		{"Gather", []string{"[1 -1]"}, func() (value, error) {
			return f.Gather(x23, i2, 0, []int{0}, []int{0}, []int{0}, []int{1, -1}, false)
		}},
		{"ScatterSum", []string{"axes [0 1]"}, func() (value, error) {
			return f.ScatterSum(x23, i2, x23, 1, []int{1}, []int{0}, []int{0, 1}, false, false)
		}},
		{"ScatterSum", []string{"Float32)[2, 3]", "Int32)[2]", "axis 0"}, func() (value, error) {
			return f.ScatterSum(x23, i2, x32, 1, []int{1}, []int{0}, []int{0}, false, false)
		}},
		{"ScatterMax", []string{"Float32", "Int32)[2]"}, func() (value, error) {
			return f.ScatterMax(x23, i2, i2, 1, []int{1}, []int{0}, []int{0}, false, false)
		}},
		{"ScatterMin", []string{"Bool)[2]"}, func() (value, error) { return f.ScatterMin(m2, i2, m2, 1, nil, []int{0}, []int{0}, false, false) }},
		{"DynamicSlice", []string{"1 starts", "Float32)[2, 3]"}, func() (value, error) { return f.DynamicSlice(x23, []value{s}, []int{1, 1}) }},
		{"DynamicSlice", []string{"start 0", "integer"}, func() (value, error) { return f.DynamicSlice(x23, []value{s, s}, []int{1, 1}) }},
		{"DynamicSlice", []string{"[1 -1]", "Float32)[2, 3]"}, func() (value, error) { return f.DynamicSlice(x23, []value{i0, i0}, []int{1, -1}) }},
		{"DynamicUpdateSlice", []string{"axis 0", "Float32)[3, 2]"}, func() (value, error) {
			return f.DynamicUpdateSlice(x23, x32, []value{s, s})
		}},
		{"Iota", []string{"axis 1"}, func() (value, error) { return f.Iota(shapes.Make(dtypes.Int32, 3), 1) }},
		{"Iota", []string{"Bool"}, func() (value, error) { return f.Iota(shapes.Make(dtypes.Bool, 3), 0) }},
		{"Constant", []string{"[2 2]"}, func() (value, error) { return f.Constant([]float32{1, 2}, 2, 2) }},
		{"Constant", nil, func() (value, error) { return f.Constant(float32(1)) }},
		{"Constant", nil, func() (value, error) { return f.Constant([]string{"x"}, 1) }},
		{"Constant", nil, func() (value, error) { return f.Constant(nil) }},
		{"Neg", nil, func() (value, error) { return f.Neg(nil) }},
		{"Neg", nil, func() (value, error) { return f.Neg("x") }},
	}
	for _, c := range cases {
		v, err := c.do()
		if err == nil {
			t.Errorf("%s%v: no error", c.name, c.want)
			continue
		}
		if v != nil {
			t.Errorf("%s: a value beside the error", c.name)
		}
		for _, w := range append(c.want, c.name) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
		if compute.IsNotImplemented(err) {
			t.Errorf("%s: %q says that the op is missing", c.name, err)
		}
	}
}

// What the backend cannot do says so in the way that GoMLX understands.
func TestMissing(t *testing.T) {
	b := openBackend(t, "cpu")
	f := b.Builder("missing").Main()
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2, 1, 1, 1, 1, 1, 1, 1), nil))
	bytes := must(f.Parameter("bytes", shapes.Make(dtypes.Uint8, 3, 110), nil))
	at := must(f.Parameter("at", shapes.Make(dtypes.Int32, 1, 1), nil))
	for name, do := range map[string]func() error{
		"no dtype at all":  func() error { _, err := f.ArgMinMax(x, 0, 999, true); return err },
		"1-bit conversion": func() error { _, err := f.ConvertDType(x, dtypes.Int1); return err },
		"4-bit iota":       func() error { _, err := f.Iota(shapes.Make(dtypes.Int4, 3), 0); return err },
		"dynamic axes of a closure": func() error {
			g := must(f.Closure())
			_, err := g.Parameter("d", shapes.MakeDynamic(dtypes.Float32, []int{shapes.DynamicDim}, []string{"n"}), nil)
			return err
		},
		"dynamic axes of complex numbers": func() error {
			f := b.Builder("complex").Main()
			_, err := f.Parameter("d", shapes.MakeDynamic(dtypes.Complex64, []int{shapes.DynamicDim}, []string{"n"}), nil)
			return err
		},
		"nine axes": func() error {
			nine := must(f.Reshape(x, 2, 1, 1, 1, 1, 1, 1, 1, 1))
			_, err := f.ArgMinMax(nine, 0, dtypes.Int32, true)
			return err
		},
		"gradient of attention": func() error {
			_, _, _, err := f.FusedScaledDotProductAttentionVJP(x, x, x, 0, nil, x, nil, x)
			return err
		},
		"GGML blocks without a form": func() error {
			_, err := f.QuantizedEmbeddingLookup(bytes, at, &compute.Quantization{Scheme: compute.QuantGGML, GGMLType: compute.GGMLQ3_K})
			return err
		},
	} {
		if err := do(); !compute.IsNotImplemented(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	caps := b.Capabilities()
	caps.Operations[compute.OpTypeAllReduce] = true
	if b.Capabilities().Operations[compute.OpTypeAllReduce] {
		t.Error("capabilities can be changed from outside")
	}
}

// Mistakes with builders, functions and executables.
func TestBadUse(t *testing.T) {
	b, other := openBackend(t, "cpu"), openBackend(t, "cpu")
	bd := b.Builder("use")
	f := bd.Main()
	if _, err := bd.Compile(); err == nil {
		t.Error("compiled without results")
	}
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2), nil))
	stranger := must(b.Builder("other").Main().Parameter("y", shapes.Make(dtypes.Float32, 2), nil))
	if _, err := f.Add(x, stranger); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("a value of another builder: %v", err)
	}
	if err := f.Return(nil, nil); err == nil {
		t.Error("returned nothing")
	}
	if err := f.Return([]compute.Value{x}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Neg(x); err == nil {
		t.Error("an op after Return")
	}
	if err := f.Return([]compute.Value{x}, nil); err == nil {
		t.Error("returned twice")
	}
	if err := bd.DeviceAssignment(1); err == nil {
		t.Error("device 1")
	}
	e := must(bd.Compile())
	if _, err := bd.Compile(); err == nil {
		t.Error("compiled twice")
	}
	in := upload(t, b, []float32{1, 2}, 2)
	for name, do := range map[string]func() ([]compute.Buffer, error){
		"no inputs": func() ([]compute.Buffer, error) { return e.Execute(nil, nil, 0) },
		"another shape": func() ([]compute.Buffer, error) {
			return e.Execute([]compute.Buffer{upload(t, b, []float32{1}, 1)}, nil, 0)
		},
		"another backend": func() ([]compute.Buffer, error) {
			return e.Execute([]compute.Buffer{upload(t, other, []float32{1, 2}, 2)}, nil, 0)
		},
		"nil":       func() ([]compute.Buffer, error) { return e.Execute([]compute.Buffer{nil}, nil, 0) },
		"donations": func() ([]compute.Buffer, error) { return e.Execute([]compute.Buffer{in}, []bool{true, true}, 0) },
		"device 1":  func() ([]compute.Buffer, error) { return e.Execute([]compute.Buffer{in}, nil, 1) },
	} {
		if _, err := do(); err == nil || !strings.Contains(err.Error(), `"use"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := in.ToFlatData(make([]float32, 3)); err == nil {
		t.Error("read into a slice of another length")
	}
	if err := in.ToFlatData(make([]int32, 2)); err == nil {
		t.Error("read into a slice of another dtype")
	}
	if _, err := b.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32, 2)); err == nil {
		t.Error("uploaded too few elements")
	}
	if _, err := b.BufferFromFlatData(1, []float32{1}, shapes.Make(dtypes.Float32, 1)); err == nil {
		t.Error("uploaded to device 1")
	}
	e.Finalize()
	e.Finalize()
	if _, err := e.Execute([]compute.Buffer{in}, nil, 0); err == nil {
		t.Error("executed after Finalize")
	}
	other.Finalize()
	other.Finalize()
	if _, err := other.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32, 1)); err == nil || !other.IsFinalized() {
		t.Error("uploaded to a finalized backend")
	}
}

// An op that the engine refuses when it is recorded is named as GoMLX has it, with what it
// was given; one whose operand failed is not blamed.
func TestFailedOpIsNamed(t *testing.T) {
	b := openBackend(t, "cpu")
	bd := b.Builder("failing")
	f := bd.Main()
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil))
	y := must(f.Neg(must(f.Exp(x))))
	if err := f.Return([]compute.Value{y}, nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range bd.(*Builder).main.nodes {
		if n.op == compute.OpTypeExp {
			n.do = func(_ *run, in []*millrace.Tensor) *millrace.Tensor { return in[0].Reshape(7) }
		}
	}
	_, err := must(bd.Compile()).Execute([]compute.Buffer{upload(t, b, make([]float32, 6), 2, 3)}, nil, 0)
	if err == nil || !strings.Contains(err.Error(), `Execute of "failing": Exp((Float32)[2, 3]): reshape`) || strings.Contains(err.Error(), "Neg") {
		t.Error(err)
	}
}

// The configuration "help" lists every option and the devices, and opens nothing.
func TestHelp(t *testing.T) {
	for _, config := range []string{"millrace:help", "millrace: help "} {
		b, err := compute.NewWithConfig(config)
		if b != nil || err == nil {
			t.Fatalf("%v, %v", b, err)
		}
		for _, want := range []string{"GOMLX_BACKEND=millrace:cpu,threads=2", "cpu, null", "\n  threads ", "\n  compile ", "(background, wait, off, native, c)", "\n  report "} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v\ndoes not say %q", err, want)
			}
		}
	}
}
