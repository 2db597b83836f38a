package gomlxbackend

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

func complexBuffer(b *Backend, z ...complex64) compute.Buffer {
	return must(b.BufferFromFlatData(0, z, shapes.Make(dtypes.Complex64, len(z))))
}

func complexElements(t *testing.T, buf compute.Buffer) []complex64 {
	t.Helper()
	flat := make([]complex64, must(buf.Shape()).Size())
	if err := buf.ToFlatData(flat); err != nil {
		t.Error(err)
	}
	return flat
}

// Buffers of complex elements hold the very bits they were given, and are gone
// as a whole.
func TestComplexBuffer(t *testing.T) {
	b := openBackend(t, "cpu")
	before := b.Device().Stats().LiveBytes
	z := []complex128{1 + 2i, complex(math.Inf(-1), math.Copysign(0, -1)), complex(0, math.Inf(1))}
	s := shapes.Make(dtypes.Complex128, 3)
	buf := must(b.BufferFromFlatData(0, z, s))
	got := make([]complex128, 3)
	if err := buf.ToFlatData(got); err != nil || !slices.Equal(got, z) || !math.Signbit(imag(got[1])) {
		t.Errorf("%v, want %v (%v)", got, z, err)
	}
	if have := must(buf.Shape()); !have.Equal(s) {
		t.Errorf("a %s", have)
	}
	for name, flat := range map[string]any{"of floats": make([]float64, 3), "of complex64": make([]complex64, 3), "too short": make([]complex128, 2), "none": nil} {
		if err := buf.ToFlatData(flat); err == nil {
			t.Errorf("a slice %s takes the elements", name)
		}
		if _, err := b.BufferFromFlatData(0, flat, s); err == nil {
			t.Errorf("a slice %s gives the elements", name)
		}
	}
	if _, err := buf.CopyToDevice(0); err == nil {
		t.Error("a copy to the only device")
	}
	for range 2 {
		if err := buf.Finalize(); err != nil {
			t.Error(err)
		}
	}
	if err := buf.ToFlatData(got); err == nil {
		t.Error("elements of a finalized buffer")
	}
	if n := b.Device().Stats().LiveBytes; n != before {
		t.Errorf("%d bytes are held of a finalized buffer", n-before)
	}
	empty := must(b.BufferFromFlatData(0, []complex64{}, shapes.Make(dtypes.Complex64, 0, 2)))
	if err := empty.ToFlatData([]complex64{}); err != nil {
		t.Error(err)
	}
}

// Every way a complex result can be something else that is there already, with
// inputs that are kept or given away.
func TestComplexOutputsOfTheirOwn(t *testing.T) {
	b := openBackend(t, "cpu")
	bd := b.Builder("outputs")
	f := bd.Main()
	vector := shapes.Make(dtypes.Complex64, 2)
	z, w := must(f.Parameter("z", vector, nil)), must(f.Parameter("w", vector, nil))
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2), nil))
	c := must(f.Constant([]complex64{5i, 6}, 2))
	turned := must(f.Reverse(w, 0))
	swapped := must(f.Complex(must(f.Imag(z)), must(f.Real(z))))
	err := f.Return([]compute.Value{z, must(f.Real(z)), must(f.Complex(x, x)), c, z, must(f.Conj(z)), c, turned, turned, x, swapped, must(f.Imag(c))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	if names, in := e.Inputs(); !slices.Equal(names, []string{"z", "w", "x"}) || !in[1].Equal(vector) {
		t.Errorf("inputs %v %v", names, in)
	}
	if out := e.Outputs(); len(out) != 12 || out[0].DType != dtypes.Complex64 || out[1].DType != dtypes.Float32 {
		t.Errorf("outputs %v", out)
	}
	want := []any{[]complex64{1 + 2i, 3 - 4i}, []float32{1, 3}, []complex64{7 + 7i, 8 + 8i}, []complex64{5i, 6}, []complex64{1 + 2i, 3 - 4i},
		[]complex64{1 - 2i, 3 + 4i}, []complex64{5i, 6}, []complex64{-1, 1i}, []complex64{-1, 1i}, []float32{7, 8}, []complex64{2 + 1i, -4 + 3i}, []float32{5, 0}}
	for _, donate := range [][]bool{nil, {true, false, true}, {true, true, true}} {
		zb, wb, xb := complexBuffer(b, 1+2i, 3-4i), complexBuffer(b, 1i, -1), upload(t, b, []float32{7, 8}, 2)
		out, err := e.Execute([]compute.Buffer{zb, wb, xb}, donate, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 3, 7} { // what the others have must stay
			if err := out[i].Finalize(); err != nil {
				t.Error(err)
			}
		}
		for i, buf := range out {
			switch w := want[i].(type) {
			case []float32:
				if got := download(t, buf); !slices.Equal(got, w) {
					t.Errorf("donate %v: result %d is %v, want %v", donate, i, got, w)
				}
			case []complex64:
				if i == 0 || i == 3 || i == 7 {
					continue
				}
				if got := complexElements(t, buf); !slices.Equal(got, w) {
					t.Errorf("donate %v: result %d is %v, want %v", donate, i, got, w)
				}
			}
		}
		for i, in := range []compute.Buffer{zb, wb} {
			gone := in.ToFlatData(make([]complex64, 2)) != nil
			if gone != (donate != nil && donate[i]) {
				t.Errorf("donate %v: input %d gone: %v", donate, i, gone)
			}
		}
	}
	// One buffer twice, given away once or twice.
	for _, donate := range [][]bool{{true, false, false}, {true, true, false}} {
		both := complexBuffer(b, 1+2i, 3-4i)
		out, err := e.Execute([]compute.Buffer{both, both, upload(t, b, []float32{7, 8}, 2)}, donate, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := complexElements(t, out[7]); !slices.Equal(got, []complex64{3 - 4i, 1 + 2i}) {
			t.Errorf("donate %v: %v", donate, got)
		}
	}
	// Inputs that do not fit stay as they are.
	kept := complexBuffer(b, 1, 2)
	if _, err := e.Execute([]compute.Buffer{kept, upload(t, b, []float32{1, 2}, 2), upload(t, b, []float32{7, 8}, 2)}, []bool{true, true, true}, 0); err == nil {
		t.Error("a float32 buffer for a complex parameter")
	}
	if got := complexElements(t, kept); !slices.Equal(got, []complex64{1, 2}) {
		t.Errorf("after an error: %v", got)
	}
}

// Parts that nobody needs are not computed, and equal ones once.
func TestComplexPartsApart(t *testing.T) {
	b := openBackend(t, "cpu")
	bd := b.Builder("apart")
	f := bd.Main()
	z := must(f.Parameter("z", shapes.Make(dtypes.Complex64, 8), nil)).(*Node)
	once, again := must(f.Mul(z, z)).(*Node), must(f.Mul(z, z)).(*Node)
	if once.re != again.re || once.im != again.im {
		t.Error("the same product twice")
	}
	if conj := must(f.Conj(z)).(*Node); conj.re != z.re {
		t.Error("a conjugate with a real part of its own")
	}
	if err := f.Return([]compute.Value{must(f.Real(must(f.Exp(once))))}, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range must(bd.Compile()).(*Executable).prog.steps {
		if s.node.op == compute.OpTypeSin {
			t.Error("a sine, which is in the imaginary part only")
		}
	}
}

// How many kernels complex ops come to, which values cannot show.
func TestComplexKernels(t *testing.T) {
	b := openBackend(t, "cpu,explore=wait")
	for _, c := range []struct {
		name  string
		most  int64
		build func(f compute.Function, z compute.Value) compute.Value
	}{
		{"div", 1, func(f compute.Function, z compute.Value) compute.Value { return must(f.Div(z, must(f.Add(z, z)))) }},
		{"exp", 1, func(f compute.Function, z compute.Value) compute.Value { return must(f.Exp(z)) }},
		{"log", 1, func(f compute.Function, z compute.Value) compute.Value { return must(f.Log(z)) }},
		{"logistic", 2, func(f compute.Function, z compute.Value) compute.Value { return must(f.Logistic(z)) }},
		{"mul", 1, func(f compute.Function, z compute.Value) compute.Value { return must(f.Mul(z, z)) }},
		{"modulus", 1, func(f compute.Function, z compute.Value) compute.Value { return must(f.Abs(must(f.Tanh(z)))) }},
		{"short transform", 4, func(f compute.Function, z compute.Value) compute.Value {
			return must(f.FFT(z, compute.FFTForward, []int{32}))
		}},
		{"transform in two steps", 8, func(f compute.Function, z compute.Value) compute.Value {
			return must(f.FFT(must(f.Reshape(z, 1024)), compute.FFTForward, []int{1024}))
		}},
	} {
		bd := b.Builder(c.name)
		f := bd.Main()
		s := shapes.Make(dtypes.Complex64, 32, 32)
		z := must(f.Parameter("z", s, nil))
		if err := f.Return([]compute.Value{c.build(f, z)}, nil); err != nil {
			t.Fatal(err)
		}
		e := must(bd.Compile())
		in := []compute.Buffer{must(b.BufferFromFlatData(0, make([]complex64, 1024), s))}
		for range 2 {
			before := b.Device().Stats()
			if _, err := e.Execute(in, nil, 0); err != nil {
				t.Fatal(err)
			}
			after := b.Device().Stats()
			if n := after.Kernels - before.Kernels; n == 0 || n > c.most || after.Fallbacks != before.Fallbacks {
				t.Errorf("%s: %d kernels, want at most %d (%d fallbacks)", c.name, n, c.most, after.Fallbacks-before.Fallbacks)
			}
		}
	}
}

// An inverse real transform does not read the imaginary parts that cannot be in
// the spectrum of real numbers, whatever they are and in whatever way the length
// is transformed.
func TestInverseRealTransformLeavesOut(t *testing.T) {
	b := openBackend(t, "cpu")
	for _, n := range []int{1, 2, 8, 9, 66, 128, 131, 262} {
		bd := b.Builder("half a spectrum")
		f := bd.Main()
		s := shapes.Make(dtypes.Complex64, n/2+1)
		z := must(f.Parameter("z", s, nil))
		if err := f.Return([]compute.Value{must(f.FFT(z, compute.FFTInverseReal, []int{n}))}, nil); err != nil {
			t.Fatal(err)
		}
		e := must(bd.Compile())
		var want []float32
		for _, im := range []float64{0, 1e20, math.Inf(1), math.NaN()} {
			half := make([]complex64, n/2+1)
			for i := range half {
				half[i] = complex(float32(i%3), float32(i%5))
			}
			half[0] = complex(1, float32(im))
			if n%2 == 0 {
				half[n/2] = complex(2, float32(im))
			}
			out, err := e.Execute([]compute.Buffer{complexBuffer(b, half...)}, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := download(t, out[0])
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("length %d with %v: %v, want %v", n, im, got, want)
			}
		}
	}
}

// A function that takes no more ops gives an error for a transform of any kind.
func TestTransformCutShort(t *testing.T) {
	for _, kind := range []compute.FFTType{compute.FFTForward, compute.FFTInverse, compute.FFTForwardReal, compute.FFTInverseReal} {
		b := openBackend(t, "cpu")
		f := b.Builder("cut short").Main().(*Function)
		dt := dtypes.Complex64
		if kind == compute.FFTForwardReal {
			dt = dtypes.Float32
		}
		x := must(f.Parameter("x", shapes.Make(dt, 3, 2, 17), nil)).(*Node)
		if err := f.Return([]compute.Value{x}, nil); err != nil {
			t.Fatal(err)
		}
		e := &expansion{f: f}
		n := 17
		if kind == compute.FFTInverseReal {
			n = 32
		}
		shape, err := transformed(x.shape, kind, []int{n})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.fft(x, shape, kind, []int{n}); got != broken || e.err == nil {
			t.Errorf("%v: %v, error %v", kind, got, e.err)
		}
	}
}
