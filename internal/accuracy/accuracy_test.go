//go:build accuracy

package accuracy

import (
	"flag"
	"math"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

var stride = flag.Uint64("stride", 1, "measure every n-th float32")

// function is an op, its meaning in float64, and its bound: units in the last place, or for
// composites abs + rel*|want|.
type function struct {
	name     string
	op       func(*millrace.Tensor) *millrace.Tensor
	ref      func(float64) float64
	ulps     float64
	abs, rel float64
}

func sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// times is x*y with the limit 0 where y vanishes for x = -inf.
func times(x, y float64) float64 {
	if y == 0 {
		return math.Copysign(0, x)
	}
	return x * y
}

var functions = []function{
	{name: "exp", op: (*millrace.Tensor).Exp, ref: math.Exp, ulps: 2},
	{name: "exp2", op: (*millrace.Tensor).Exp2, ref: math.Exp2, ulps: 2},
	{name: "log", op: (*millrace.Tensor).Log, ref: math.Log, ulps: 2},
	{name: "log2", op: (*millrace.Tensor).Log2, ref: math.Log2, ulps: 2},
	{name: "rsqrt", op: (*millrace.Tensor).Rsqrt, ref: func(x float64) float64 { return 1 / math.Sqrt(x) }, ulps: 2},
	{name: "sin", op: (*millrace.Tensor).Sin, ref: math.Sin, ulps: 2},
	{name: "cos", op: (*millrace.Tensor).Cos, ref: math.Cos, ulps: 2},
	{name: "sigmoid", op: (*millrace.Tensor).Sigmoid, ref: sigmoid, ulps: 2},
	{name: "tan", op: (*millrace.Tensor).Tan, ref: math.Tan, ulps: 4},
	{name: "asin", op: (*millrace.Tensor).Asin, ref: math.Asin, ulps: 4},
	{name: "acos", op: (*millrace.Tensor).Acos, ref: math.Acos, ulps: 4},
	{name: "atan", op: (*millrace.Tensor).Atan, ref: math.Atan, ulps: 4},
	{name: "sinh", op: (*millrace.Tensor).Sinh, ref: math.Sinh, ulps: 4},
	{name: "cosh", op: (*millrace.Tensor).Cosh, ref: math.Cosh, ulps: 4},
	{name: "tanh", op: (*millrace.Tensor).Tanh, ref: math.Tanh, ulps: 4},
	{name: "erf", op: (*millrace.Tensor).Erf, ref: math.Erf, ulps: 4},
	{name: "log1p", op: (*millrace.Tensor).Log1p, ref: math.Log1p, ulps: 4},
	{name: "expm1", op: (*millrace.Tensor).Expm1, ref: math.Expm1, ulps: 4},
	{name: "log10", op: (*millrace.Tensor).Log10, ref: math.Log10, ulps: 4},
	{name: "asinh", op: (*millrace.Tensor).Asinh, ref: math.Asinh, ulps: 4},
	{name: "acosh", op: (*millrace.Tensor).Acosh, ref: math.Acosh, ulps: 4},
	{name: "atanh", op: (*millrace.Tensor).Atanh, ref: math.Atanh, ulps: 4},
	{name: "gelu", op: (*millrace.Tensor).Gelu, abs: 5e-7, rel: 2e-7,
		ref: func(x float64) float64 { return times(x, 0.5*math.Erfc(-x/math.Sqrt2)) }},
	{name: "gelutanh", op: (*millrace.Tensor).GeluTanh, abs: 5e-7, rel: 2e-7,
		ref: func(x float64) float64 {
			return times(x, sigmoid(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}},
	{name: "silu", op: (*millrace.Tensor).Silu, abs: 1e-37, rel: 3e-7,
		ref: func(x float64) float64 { return times(x, sigmoid(x)) }},
	{name: "softplus", op: (*millrace.Tensor).Softplus, abs: 1e-44, rel: 4e-7,
		ref: func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
}

func TestFloat32(t *testing.T) {
	dev, err := millrace.Open("cpu:compile=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			w := sweep(t, dev, f)
			if f.ulps > 0 {
				t.Logf("%s: %.3f ulp at %x, largest absolute error below 10: %.3g", f.name, w.ulps, w.at, w.abs)
				if w.ulps > f.ulps {
					t.Errorf("%s is off by %.3f ulp at %x, bound %g", f.name, w.ulps, w.at, f.ulps)
				}
				return
			}
			t.Logf("%s: %.2f of its bound at %x, largest absolute error below 10: %.3g", f.name, w.share, w.at, w.abs)
			if w.share > 1 {
				t.Errorf("%s is off by %.2f times its bound at %x", f.name, w.share, w.at)
			}
		})
	}
}

// worst is the largest error found: in ulps, as a fraction of an absolute and relative bound, and
// absolute for results below 10.
type worst struct {
	ulps, share, abs float64
	at               float32
}

func sweep(t *testing.T, dev *millrace.Device, f function) worst {
	const chunk = 1 << 20
	x, y := make([]float32, chunk), make([]float32, chunk)
	var total worst
	for next := uint64(0); next < 1<<32; {
		n := 0
		for ; n < chunk && next < 1<<32; n++ {
			x[n] = math.Float32frombits(uint32(next))
			next += *stride
		}
		in := millrace.FromSliceOn(dev, x[:n], n)
		out := f.op(in)
		if err := millrace.ReadInto(y[:n], out); err != nil {
			t.Fatal(err)
		}
		out.Release()
		in.Release()
		total.join(compare(f, x[:n], y[:n]), f)
	}
	return total
}

// compare uses all cores: the references take longer than the ops.
func compare(f function, x, y []float32) worst {
	parts := goruntime.GOMAXPROCS(0)
	found := make([]worst, parts)
	var wg sync.WaitGroup
	for p := range parts {
		lo, hi := len(x)*p/parts, len(x)*(p+1)/parts
		wg.Go(func() {
			var w worst
			for i := lo; i < hi; i++ {
				w.join(measure(f, x[i], y[i]), f)
			}
			found[p] = w
		})
	}
	wg.Wait()
	var w worst
	for _, v := range found {
		w.join(v, f)
	}
	return w
}

func (w *worst) join(v worst, f function) {
	w.abs = max(w.abs, v.abs)
	if v.ulps > w.ulps && f.ulps > 0 || v.share > w.share && f.ulps == 0 {
		w.at = v.at
	}
	w.ulps, w.share = max(w.ulps, v.ulps), max(w.share, v.share)
}

func measure(f function, x, got float32) worst {
	want := f.ref(float64(x))
	g := float64(got)
	w := worst{at: x}
	if g == want || g != g && want != want {
		if g == 0 && f.ulps > 0 && math.Signbit(g) != math.Signbit(want) {
			w.ulps = math.Inf(1)
		}
		return w
	}
	if math.IsInf(g, 0) && math.Abs(want) > math.MaxFloat32 {
		return w
	}
	d := math.Abs(g - want)
	if d != d || math.IsInf(d, 0) {
		w.ulps, w.share = math.Inf(1), math.Inf(1)
		return w
	}
	if f.ulps == 0 {
		w.share = d / (f.abs + f.rel*math.Abs(want))
	}
	_, e := math.Frexp(want)
	w.ulps = math.Ldexp(d, 24-max(e, -125))
	if math.Abs(want) < 10 {
		w.abs = d
	}
	return w
}
