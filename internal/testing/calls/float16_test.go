package calls_test

import (
	"errors"
	"math"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestHalfElements checks conversions of the Go elements at the critical values.
func TestHalfElements(t *testing.T) {
	for _, c := range []struct {
		f    float32
		f16  millrace.F16
		bf16 millrace.BF16
		s16  string
		sb16 string
	}{
		{0, 0, 0, "0.0", "0.0"},
		{1, 0x3c00, 0x3f80, "1.0", "1.0"},
		{-2, 0xc000, 0xc000, "-2.0", "-2.0"},
		{0.1, 0x2e66, 0x3dcd, "0.1", "0.1"},
		{1. / 3, 0x3555, 0x3eab, "0.3333", "0.334"},
		{65504, 0x7bff, 0x4780, "65500.0", "65500.0"},
		{65519.996, 0x7bff, 0x4780, "65500.0", "65500.0"},
		{65520, 0x7c00, 0x4780, "inf", "65500.0"},
		{0x1p-24, 1, 0x3380, "6e-08", "5.96e-08"},
		{0x1p-25, 0, 0x3300, "0.0", "2.98e-08"},
		{1 + 0x1p-11, 0x3c00, 0x3f80, "1.0", "1.0"},
		{1 + 0x1p-8, 0x3c04, 0x3f80, "1.004", "1.0"},
		{1 + 3*0x1p-8, 0x3c0c, 0x3f82, "1.012", "1.016"},
		{float32(math.Inf(-1)), 0xfc00, 0xff80, "-inf", "-inf"},
		{float32(math.NaN()), 0x7e00, 0x7fc0, "nan", "nan"},
		{math.MaxFloat32, 0x7c00, 0x7f80, "inf", "inf"},
	} {
		h, b := millrace.NewF16(c.f), millrace.NewBF16(c.f)
		if h != c.f16 || b != c.bf16 {
			t.Errorf("%v is %#x and %#x, want %#x and %#x", c.f, uint16(h), uint16(b), uint16(c.f16), uint16(c.bf16))
		}
		if h.String() != c.s16 || b.String() != c.sb16 {
			t.Errorf("%v prints as %v and %v, want %v and %v", c.f, h, b, c.s16, c.sb16)
		}
		if back := millrace.NewF16(h.Float32()); back != h {
			t.Errorf("%#x comes back as %#x", uint16(h), uint16(back))
		}
		if back := millrace.NewBF16(b.Float32()); back != b {
			t.Errorf("%#x comes back as %#x", uint16(b), uint16(back))
		}
	}
}

func roundTrip[T millrace.Element](t *testing.T, dt millrace.DType, text string, data ...T) {
	t.Helper()
	x := millrace.FromSlice(data)
	if x.DType() != dt {
		t.Errorf("%T makes %v, want %v", data, x.DType(), dt)
	}
	got := values[T](t, x)
	for i := range data {
		if got[i] != data[i] {
			t.Errorf("%v: element %d is %v, want %v", dt, i, got[i], data[i])
		}
	}
	if one, err := millrace.Item[T](millrace.Scalar(data[0])); err != nil || one != data[0] {
		t.Errorf("%v: item is %v, %v", dt, one, err)
	}
	if s := x.String(); s != text {
		t.Errorf("%v prints as\n%s\nwant\n%s", dt, s, text)
	}
	for _, same := range []func() (bool, error){
		func() (bool, error) { return millrace.Equal(x, millrace.FromSlice(data)) },
		func() (bool, error) { return millrace.AllClose(x, millrace.FromSlice(data), 0, 0) },
	} {
		if ok, err := same(); !ok || err != nil {
			t.Errorf("%v differs from itself: %v", dt, err)
		}
	}
	other := append([]T{}, data...)
	other[0], other[1] = other[1], other[0]
	if ok, err := millrace.Equal(x, millrace.FromSlice(other)); ok || err != nil {
		t.Errorf("%v equals another: %v", dt, err)
	}
	if ok, err := millrace.AllClose(x, millrace.FromSlice(other), 0, 0.25); ok || err != nil {
		t.Errorf("%v is close to another: %v", dt, err)
	}
}

func TestElements(t *testing.T) {
	h, b := millrace.NewF16, millrace.NewBF16
	roundTrip(t, millrace.Float16, "[ 0.1     1.5    -0.3333]", h(0.1), h(1.5), h(-1./3))
	roundTrip(t, millrace.BFloat16, "[  0.1   1.5 -20. ]", b(0.1), b(1.5), b(-20))
	roundTrip(t, millrace.Int8, "[-128  127    0]", int8(-128), 127, 0)
	roundTrip(t, millrace.Int16, "[-32768  32767      0]", int16(-32768), 32767, 0)
	roundTrip(t, millrace.Uint16, "[65535     0     1]", uint16(65535), 0, 1)
	roundTrip(t, millrace.Uint32, "[4294967295          0]", uint32(math.MaxUint32), 0)
	roundTrip(t, millrace.Uint64, "[18446744073709551615                    0]", uint64(math.MaxUint64), 0)
}

// TestHalfRoundsEveryOp checks that every op of the program rounds, fused or not.
func TestHalfRoundsEveryOp(t *testing.T) {
	var x, y, want []millrace.BF16
	for i := range 500 {
		a, b := millrace.NewBF16(float32(i)*0.37-80), millrace.NewBF16(1.7-float32(i)*0.011)
		x, y = append(x, a), append(y, b)
		p := millrace.NewBF16(a.Float32() * b.Float32())
		want = append(want, millrace.NewBF16(p.Float32()+b.Float32()))
	}
	u, v := millrace.FromSlice(x), millrace.FromSlice(y)
	got := values[millrace.BF16](t, u.Mul(v).Add(v))
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v*%v+%v is %v, want %v", x[i], y[i], y[i], got[i], want[i])
		}
	}
	sum := millrace.Full(millrace.Float16, 1, 5000).Sum()
	if s, err := millrace.Item[millrace.F16](sum); err != nil || s.Float32() != 5000 {
		t.Errorf("5000 ones of float16 are %v, %v", s, err)
	}
}

// TestScalarRanges checks that an integer dtype must hold a scalar exactly, and that floats
// round.
func TestScalarRanges(t *testing.T) {
	for _, c := range []struct {
		dt millrace.DType
		v  float64
		ok bool
	}{
		{millrace.Int8, -128, true}, {millrace.Int8, 128, false}, {millrace.Int8, 0.5, false},
		{millrace.Uint16, 65535, true}, {millrace.Uint16, -1, false}, {millrace.Uint32, 1 << 32, false},
		{millrace.Uint64, 1 << 63, true}, {millrace.Uint64, 1 << 64, false}, {millrace.Int64, 1 << 63, false}, {millrace.Int64, -1 << 63, true},
		{millrace.Float16, 1e6, true}, {millrace.BFloat16, math.NaN(), true}, {millrace.Int16, math.NaN(), false},
	} {
		err := millrace.Full(c.dt, c.v, 2).Err()
		if c.ok && err != nil || !c.ok && !errors.Is(err, millrace.ErrDType) {
			t.Errorf("full of %v %v: %v", c.dt, c.v, err)
		}
	}
	down := millrace.Arange(millrace.Uint16, 1000, 997, -1)
	if s := down.String(); s != "[1000  999  998]" {
		t.Errorf("counting down: %s", s)
	}
	if s := millrace.Arange(millrace.Float16, 0, 1, 0.25).String(); s != "[0.   0.25 0.5  0.75]" {
		t.Errorf("float16 arange: %s", s)
	}
}
