package millrace_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// badCall is a call whose result carries an error with this op and this cause.
type badCall struct {
	op    string
	call  func() (*tensor, int)
	cause error
}

// checkBad checks that results of bad calls carry the name, the cause and the line of the call in
// the caller's file, and that ops on them carry the same error.
func checkBad(t *testing.T, calls []badCall) {
	t.Helper()
	for _, c := range calls {
		r, at := c.call()
		wantError(t, c.op, r.Err(), c.cause, at)
		var op, next *millrace.OpError
		if errors.As(r.Err(), &op) && op.Op != c.op {
			t.Errorf("line %d: names %s, want %s: %v", at, op.Op, c.op, r.Err())
		}
		if !errors.As(r.Exp().Err(), &next) || op == nil || next.Caller != op.Caller {
			t.Errorf("line %d: what follows says %v", at, r.Exp().Err())
		}
		r.Release()
	}
	if err := wantOnes(millrace.Full(millrace.Float32, 2, 3).SubScalar(1)); err != nil {
		t.Errorf("the stream is no longer usable: %v", err)
	}
}

// checkHandsOn calls ops with an operand that carries an error, with a released one and with nil.
// The results must carry the error. If the call is the first to find the error, it must name the
// call's line.
func checkHandsOn(t *testing.T, ops map[string]func(x *tensor) *tensor) {
	t.Helper()
	bad := millrace.Ones(millrace.Float32, 3).Reshape(2)
	gone := millrace.Ones(millrace.Float32, 3)
	gone.Release()
	for name, f := range ops {
		r := f(bad)
		var a, b *millrace.OpError
		if !errors.As(r.Err(), &a) || !errors.As(bad.Err(), &b) || a.Caller != b.Caller || a.Op != b.Op {
			t.Errorf("%s of an error: %v", name, r.Err())
		}
		if r = f(gone); !errors.Is(r.Err(), millrace.ErrReleased) {
			t.Errorf("%s of what was released: %v", name, r.Err())
		}
		_, file, _, _ := runtime.Caller(0)
		if r = f(nil); !errors.As(r.Err(), &a) || !strings.HasPrefix(a.Caller, strings.TrimSuffix(file, ".go")) {
			t.Errorf("%s of nil: %v", name, r.Err())
		}
	}
}

func TestBadShapes(t *testing.T) {
	f32, shape, dtype := millrace.Float32, millrace.ErrShape, millrace.ErrDType
	m, v, zero := millrace.Ones(f32, 2, 3), millrace.Ones(f32, 3), millrace.Ones(f32)
	b := millrace.Ones(millrace.Bool, 3, 3)
	first := func(ts []*tensor) *tensor { return ts[0] }
	last := func(ts []*tensor) *tensor { return ts[len(ts)-1] }
	checkBad(t, []badCall{
		{"eye", func() (*tensor, int) { return millrace.Eye(f32, -1), line() }, shape},
		{"eye", func() (*tensor, int) { return millrace.Eye(f32, 1, 2, 3), line() }, shape},
		{"eye", func() (*tensor, int) { return millrace.Eye(f32, 1<<40), line() }, shape},
		{"eye", func() (*tensor, int) { return millrace.Eye(millrace.Invalid, 2), line() }, dtype},
		{"eye", func() (*tensor, int) { return millrace.EyeOn(nil, f32, 2), line() }, nil},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(millrace.Int32, 0, 1, 3), line() }, dtype},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, 0, 1e300, 3), line() }, dtype},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, 0, 1, -1), line() }, shape},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, 0, math.NaN(), 3), line() }, shape},
		{"linspace", func() (*tensor, int) { return millrace.Linspace(f32, math.Inf(1), 0, 3), line() }, shape},
		{"linspace", func() (*tensor, int) { return millrace.LinspaceOn(nil, f32, 0, 1, 3), line() }, nil},
		{"split", func() (*tensor, int) { return last(millrace.Split(m, 1, 1, 1)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 1, 4, -1)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 1)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 1, math.MaxInt, math.MaxInt, 5)), line() }, shape},
		{"split", func() (*tensor, int) { return first(millrace.Split(m, 2, 3)), line() }, shape},
		{"chunk", func() (*tensor, int) { return first(millrace.Chunk(m, 0, 1)), line() }, shape},
		{"chunk", func() (*tensor, int) { return first(millrace.Chunk(m, 2, -3)), line() }, shape},
		{"transpose", func() (*tensor, int) { return m.Transpose(0, 2), line() }, shape},
		{"transpose", func() (*tensor, int) { return m.Transpose(-3, 0), line() }, shape},
		{"moveaxis", func() (*tensor, int) { return m.MoveAxis(2, 0), line() }, shape},
		{"moveaxis", func() (*tensor, int) { return zero.MoveAxis(0, 0), line() }, shape},
		{"flatten", func() (*tensor, int) { return m.Flatten(1, 0), line() }, shape},
		{"flatten", func() (*tensor, int) { return m.Flatten(0, 2), line() }, shape},
		{"diag", func() (*tensor, int) { return zero.Diag(0), line() }, shape},
		{"diag", func() (*tensor, int) { return v.Diag(math.MinInt), line() }, shape},
		{"diag", func() (*tensor, int) { return v.Diag(1 << 40), line() }, shape},
		{"trace", func() (*tensor, int) { return v.Trace(), line() }, shape},
		{"trace", func() (*tensor, int) { return b.Trace(), line() }, dtype},
		{"outer", func() (*tensor, int) { return millrace.Outer(v, m), line() }, shape},
		{"outer", func() (*tensor, int) { return millrace.Outer(v, v.Cast(millrace.Int32)), line() }, dtype},
		{"outer", func() (*tensor, int) { return millrace.Outer(b.Diag(0), b.Diag(0)), line() }, dtype},
	})
	checkHandsOn(t, map[string]func(x *tensor) *tensor{
		"split":     func(x *tensor) *tensor { return last(millrace.Split(x, 9, 1, 2)) },
		"chunk":     func(x *tensor) *tensor { return last(millrace.Chunk(x, 0, 9)) },
		"transpose": func(x *tensor) *tensor { return x.Transpose(0, 9) },
		"moveaxis":  func(x *tensor) *tensor { return x.MoveAxis(0, 9) },
		"flatten":   func(x *tensor) *tensor { return x.Flatten(0, 9) },
		"diag":      func(x *tensor) *tensor { return x.Diag(0) },
		"trace":     (*tensor).Trace,
		"outer":     func(x *tensor) *tensor { return millrace.Outer(v, x) },
		"of outer":  func(x *tensor) *tensor { return millrace.Outer(x, v) },
	})
}

func TestBadFunctions(t *testing.T) {
	i, dtype := millrace.Ones(millrace.Int32, 3), millrace.ErrDType
	checkBad(t, []badCall{
		{"log10", func() (*tensor, int) { return i.Log10(), line() }, dtype},
		{"asinh", func() (*tensor, int) { return i.Asinh(), line() }, dtype},
		{"acosh", func() (*tensor, int) { return i.Acosh(), line() }, dtype},
		{"atanh", func() (*tensor, int) { return i.Cast(millrace.Bool).Atanh(), line() }, dtype},
	})
	checkHandsOn(t, map[string]func(x *tensor) *tensor{
		"log10": (*tensor).Log10, "asinh": (*tensor).Asinh, "acosh": (*tensor).Acosh, "atanh": (*tensor).Atanh,
	})
}

func TestBadOrder(t *testing.T) {
	f32, i32, shape, dtype := millrace.Float32, millrace.Int32, millrace.ErrShape, millrace.ErrDType
	f, v, i := millrace.Ones(f32, 2, 3), millrace.Ones(f32, 3), millrace.Ones(i32, 3)
	mask := f.GtScalar(0)
	holes := millrace.FromSlice([]float32{1, float32(math.NaN())})
	late := f.Take(i.MulScalar(7), 0) // the error is only known when the result is computed
	first := func(a, _ *tensor) *tensor { return a }
	third := func(_, _, c *tensor) *tensor { return c }
	checkBad(t, []badCall{
		{"nonzero", func() (*tensor, int) { return millrace.NonZero(f32, f), line() }, dtype},
		{"maskedselect", func() (*tensor, int) { return millrace.MaskedSelect(f, v.GtScalar(0)), line() }, shape},
		{"maskedselect", func() (*tensor, int) { return millrace.MaskedSelect(v, mask), line() }, shape},
		{"maskedselect", func() (*tensor, int) { return millrace.MaskedSelect(f, f), line() }, dtype},
		{"uniqueall", func() (*tensor, int) { return third(millrace.UniqueAll(f32, f)), line() }, dtype},
		{"searchsorted", func() (*tensor, int) { return millrace.SearchSorted(i32, f, v), line() }, shape},
		{"searchsorted", func() (*tensor, int) { return millrace.SearchSorted(i32, v, i), line() }, dtype},
		{"searchsorted", func() (*tensor, int) { return millrace.SearchSorted(f32, v, v), line() }, dtype},
		{"searchsorted", func() (*tensor, int) { return millrace.SearchSorted(i32, v, v, millrace.Side(2)), line() }, shape},
		{"searchsorted", func() (*tensor, int) {
			return millrace.SearchSorted(i32, v, v, millrace.SideLeft, millrace.SideLeft), line()
		}, shape},
		{"searchsorted", func() (*tensor, int) {
			return millrace.SearchSorted(i32, i.Cast(millrace.Bool), i.Cast(millrace.Bool)), line()
		}, dtype},
		{"bincount", func() (*tensor, int) { return millrace.BinCount(i32, f, 0), line() }, dtype},
		{"bincount", func() (*tensor, int) { return millrace.BinCount(millrace.Bool, i, 0), line() }, dtype},
		{"bincount", func() (*tensor, int) { return millrace.BinCount(i32, i, -1), line() }, shape},
		{"bincount", func() (*tensor, int) { return millrace.BinCount(i32, i.Neg(), 0), line() }, millrace.ErrIndex},
		{"bincount", func() (*tensor, int) {
			return millrace.BinCount(i32, millrace.Full(millrace.Uint64, 1<<63, 2), 0), line()
		}, millrace.ErrIndex},
		{"histogram", func() (*tensor, int) { return first(millrace.Histogram(i32, i, 3, 0, 1)), line() }, dtype},
		{"histogram", func() (*tensor, int) { return first(millrace.Histogram(millrace.Bool, f, 3, 0, 1)), line() }, dtype},
		{"histogram", func() (*tensor, int) { return first(millrace.Histogram(i32, f, 0, 0, 1)), line() }, shape},
		{"histogram", func() (*tensor, int) { return first(millrace.Histogram(i32, f, 3, 1, 0)), line() }, shape},
		{"histogram", func() (*tensor, int) { return first(millrace.Histogram(i32, f, 3, 0, math.NaN())), line() }, shape},
		{"histogram", func() (*tensor, int) { return first(millrace.Histogram(i32, f, 3, 0, 1e300)), line() }, shape},
		{"histogram", func() (*tensor, int) { return first(millrace.Histogram(i32, holes, 3, 0, 0)), line() }, shape},
		{"median", func() (*tensor, int) { return i.Median(), line() }, dtype},
		{"median", func() (*tensor, int) { return f.Median(2), line() }, shape},
		{"median", func() (*tensor, int) { return millrace.Zeros(f32, 0, 3).Median(0), line() }, shape},
		{"median", func() (*tensor, int) { return f.MedianKeep(2), line() }, shape},
		{"quantile", func() (*tensor, int) { return i.QuantileKeep(0.5), line() }, dtype},
		{"quantile", func() (*tensor, int) { return f.Quantile(1.5), line() }, shape},
		{"quantile", func() (*tensor, int) { return f.Quantile(math.NaN(), 0), line() }, shape},
		{"quantile", func() (*tensor, int) { return f.Quantile(0.5, 0, 0), line() }, shape},
		{"sumas", func() (*tensor, int) { return f.SumAs(millrace.Bool), line() }, dtype},
		{"sumas", func() (*tensor, int) { return f.SumAs(i32, 2), line() }, shape},
		{"gather", func() (*tensor, int) { return v.TakeAlong(v.GtScalar(0), 0), line() }, dtype},
		{"gather", func() (*tensor, int) { return v.Take(v, 0), line() }, dtype},
		{"put", func() (*tensor, int) { return v.Put(v, v, 0, millrace.CombineAdd), line() }, dtype},
	})
	for name, f := range map[string]func() (*tensor, int){
		"nonzero": func() (*tensor, int) { return millrace.NonZero(i32, late), line() },
		"unique":  func() (*tensor, int) { return millrace.Unique(late), line() },
		"hist":    func() (*tensor, int) { return first(millrace.Histogram(i32, late, 3, 0, 0)), line() },
	} {
		if r, _ := f(); !errors.Is(r.Err(), millrace.ErrIndex) {
			t.Errorf("%s of an error that is found late: %v", name, r.Err())
		}
	}
	at := v.Take(millrace.FromSlice([]int32{0, -4}), 0, millrace.IndexFromEnd)
	if err := at.Eval(); !errors.Is(err, millrace.ErrIndex) || !strings.Contains(err.Error(), "-4") {
		t.Errorf("index -4 of 3 from the end: %v", err)
	}
	checkHandsOn(t, map[string]func(x *tensor) *tensor{
		"nonzero": func(x *tensor) *tensor { return millrace.NonZero(i32, x) },
		"masked":  func(x *tensor) *tensor { return millrace.MaskedSelect(x, mask) },
		"mask":    func(x *tensor) *tensor { return millrace.MaskedSelect(f, x) },
		"unique":  millrace.Unique, "uniqueall": func(x *tensor) *tensor { return third(millrace.UniqueAll(i32, x)) },
		"sorted":   func(x *tensor) *tensor { return millrace.SearchSorted(i32, x, v) },
		"searched": func(x *tensor) *tensor { return millrace.SearchSorted(i32, v, x) },
		"bincount": func(x *tensor) *tensor { return millrace.BinCount(i32, x, 0) },
		"hist":     func(x *tensor) *tensor { return first(millrace.Histogram(i32, x, 3, 0, 0)) },
		"median":   func(x *tensor) *tensor { return x.Median() }, "quantile": func(x *tensor) *tensor { return x.Quantile(0.5) },
		"sumas": func(x *tensor) *tensor { return x.SumAs(i32) }, "take": func(x *tensor) *tensor { return v.Take(x, 0, millrace.IndexFromEnd) },
	})
}

func TestBadDraws(t *testing.T) {
	f32, i32, shape, dtype := millrace.Float32, millrace.Int32, millrace.ErrShape, millrace.ErrDType
	w := millrace.Ones(f32, 2, 3)
	checkBad(t, []badCall{
		{"integers", func() (*tensor, int) { return millrace.Integers(f32, 1, 0, 2, 3), line() }, dtype},
		{"integers", func() (*tensor, int) { return millrace.Integers(millrace.Bool, 1, 0, 2, 3), line() }, dtype},
		{"integers", func() (*tensor, int) { return millrace.Integers(millrace.Uint8, 1, 0, 257, 3), line() }, dtype},
		{"integers", func() (*tensor, int) { return millrace.Integers(millrace.Uint64, 1, -1, 7, 3), line() }, dtype},
		{"integers", func() (*tensor, int) { return millrace.Integers(millrace.Int8, 1, -129, 7, 3), line() }, dtype},
		{"integers", func() (*tensor, int) { return millrace.Integers(i32, 1, 3, 3, 3), line() }, shape},
		{"integers", func() (*tensor, int) { return millrace.Integers(i32, 1, 0, 3, -1), line() }, shape},
		{"integers", func() (*tensor, int) { return millrace.Integers(i32, 1, 0, 3, 1<<32), line() }, shape},
		{"integers", func() (*tensor, int) { return millrace.IntegersOn(nil, i32, 1, 0, 3, 1), line() }, nil},
		{"permutation", func() (*tensor, int) { return millrace.Permutation(f32, 1, 3), line() }, dtype},
		{"permutation", func() (*tensor, int) { return millrace.Permutation(i32, 1, -1), line() }, shape},
		{"permutation", func() (*tensor, int) { return millrace.Permutation(i32, 1, 1<<40), line() }, shape},
		{"permutation", func() (*tensor, int) { return millrace.PermutationOn(nil, i32, 1, 3), line() }, nil},
		{"multinomial", func() (*tensor, int) { return millrace.Multinomial(i32, 1, w.Cast(i32), 2, true), line() }, dtype},
		{"multinomial", func() (*tensor, int) { return millrace.Multinomial(f32, 1, w, 2, true), line() }, dtype},
		{"multinomial", func() (*tensor, int) { return millrace.Multinomial(i32, 1, w, 4, false), line() }, shape},
		{"multinomial", func() (*tensor, int) { return millrace.Multinomial(i32, 1, w, -1, true), line() }, shape},
		{"multinomial", func() (*tensor, int) { return millrace.Multinomial(i32, 1, w, math.MaxInt, true), line() }, shape},
		{"multinomial", func() (*tensor, int) {
			return millrace.Multinomial(i32, 1, millrace.Ones(f32, 1<<20, 3), math.MaxInt/8, true), line()
		}, shape},
		{"multinomial", func() (*tensor, int) { return millrace.Multinomial(i32, 1, millrace.Ones(f32), 1, true), line() }, shape},
		{"multinomial", func() (*tensor, int) { return millrace.Multinomial(i32, 1, millrace.Ones(f32, 2, 0), 0, true), line() }, shape},
	})
	checkHandsOn(t, map[string]func(x *tensor) *tensor{
		"multinomial": func(x *tensor) *tensor { return millrace.Multinomial(i32, 1, x, 9, false) },
	})
	if v, err := millrace.Values[int64](millrace.Integers(millrace.Int64, 1, math.MinInt64, math.MaxInt64, 4)); err != nil || v[0] == v[1] {
		t.Errorf("all numbers of 64 bits but one: %v, %v", v, err)
	}
}

func TestBadTransforms(t *testing.T) {
	f32, shape, dtype := millrace.Float32, millrace.ErrShape, millrace.ErrDType
	f, i, none := millrace.Ones(f32, 2, 3), millrace.Ones(millrace.Int32, 2, 3), millrace.Zeros(f32, 2, 0)
	volume, kernels := millrace.Zeros(f32, 1, 4, 5, 5, 5), millrace.Zeros(f32, 6, 4, 3, 3, 3)
	image := millrace.Zeros(f32, 1, 4, 5, 5)
	type opt = millrace.ConvOptions
	type to = millrace.ResizeOptions
	first := func(a, _ *tensor) *tensor { return a }
	second := func(_, b *tensor) *tensor { return b }
	v := millrace.Ones(f32, 2)
	checkBad(t, []badCall{
		{"fft", func() (*tensor, int) { return first(millrace.FFT(i, i, 0)), line() }, dtype},
		{"fft", func() (*tensor, int) { return second(millrace.FFT(f, f.Cast(millrace.Float64), 0)), line() }, dtype},
		{"fft", func() (*tensor, int) { return second(millrace.FFT(f, f.T(), 0)), line() }, shape},
		{"fft", func() (*tensor, int) { return first(millrace.FFT(f, nil, 2)), line() }, shape},
		{"fft", func() (*tensor, int) {
			return first(millrace.FFT(v.Slice(millrace.At(0)).Expand(1<<28+1), nil, 0)), line()
		}, shape},
		{"irfft", func() (*tensor, int) {
			x := v.Slice(millrace.At(0)).Expand(1 << 40)
			return millrace.IRFFT(x, x, 1<<41-2, 0), line()
		}, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(f, to{}, 1<<28+1), line() }, shape},
		{"resize", func() (*tensor, int) {
			return millrace.Resize(millrace.Ones(f32, 1, 1, 1), to{}, 1<<28, 1<<28, 1<<28), line()
		}, shape},
		{"ifft", func() (*tensor, int) { return first(millrace.IFFT(none, none, 1)), line() }, shape},
		{"rfft", func() (*tensor, int) { return first(millrace.RFFT(f, -3)), line() }, shape},
		{"rfft", func() (*tensor, int) { return first(millrace.RFFT(i, 0)), line() }, dtype},
		{"irfft", func() (*tensor, int) { return millrace.IRFFT(f, f, 3, 1), line() }, shape},
		{"irfft", func() (*tensor, int) { return millrace.IRFFT(f, f, -1, 1), line() }, shape},
		{"irfft", func() (*tensor, int) { return millrace.IRFFT(f, nil, 4, 1), line() }, nil},
		{"fftn", func() (*tensor, int) { return first(millrace.FFTN(f, f, 0, -2)), line() }, shape},
		{"fftn", func() (*tensor, int) { return second(millrace.FFTN(f, i, 0)), line() }, dtype},
		{"fftn", func() (*tensor, int) { return second(millrace.FFTN(none, nil)), line() }, shape},
		{"ifftn", func() (*tensor, int) { return first(millrace.IFFTN(f, f, 2)), line() }, shape},
		{"rfftn", func() (*tensor, int) { return first(millrace.RFFTN(f.Sum())), line() }, shape},
		{"irfftn", func() (*tensor, int) { return millrace.IRFFTN(f, f, 3, 0, 1), line() }, shape},
		{"irfftn", func() (*tensor, int) { return millrace.IRFFTN(f.Sum(), f.Sum(), 1), line() }, shape},
		{"conv1d", func() (*tensor, int) { return millrace.Conv1d(image, image, opt{}), line() }, shape},
		{"conv2d", func() (*tensor, int) { return millrace.Conv2d(volume, kernels, opt{}), line() }, shape},
		{"conv3d", func() (*tensor, int) { return millrace.Conv3d(image, image, opt{}), line() }, shape},
		{"conv", func() (*tensor, int) { return millrace.Conv3d(volume, image, opt{}), line() }, shape},
		{"conv", func() (*tensor, int) { return millrace.Conv3d(volume, kernels.Cast(millrace.Float64), opt{}), line() }, dtype},
		{"conv", func() (*tensor, int) { return millrace.Conv3d(volume, kernels, opt{Stride: []int{1, 1}}), line() }, shape},
		{"conv", func() (*tensor, int) { return millrace.Conv3d(volume, kernels, opt{Dilation: []int{3, 1, 1}}), line() }, shape},
		{"conv", func() (*tensor, int) { return millrace.Conv3d(volume, kernels, opt{Groups: 3}), line() }, shape},
		{"convtranspose", func() (*tensor, int) { return volume.ConvTranspose(kernels, opt{}), line() }, shape},
		{"convtranspose", func() (*tensor, int) {
			return volume.ConvTranspose(kernels.Slice(millrace.R(0, 4)), opt{Padding: [][2]int{{0, 0}, {4, 4}, {0, 0}}}), line()
		}, shape},
		{"convtranspose", func() (*tensor, int) {
			return volume.ConvTranspose(kernels.Slice(millrace.R(0, 4)), opt{OutputPadding: []int{0, -1, 0}}), line()
		}, shape},
		{"convtranspose", func() (*tensor, int) {
			return volume.Unsqueeze(0).ConvTranspose(kernels.Unsqueeze(0), opt{}), line()
		}, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(f, to{}), line() }, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(f, to{}, 1, 2, 3), line() }, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(f, to{}, 0), line() }, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(none, to{}, 3), line() }, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(f, to{AlignCorners: true}, 3), line() }, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(f, to{Mode: 3}, 3), line() }, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(f, to{Antialias: true}, 3), line() }, shape},
		{"resize", func() (*tensor, int) {
			return millrace.Resize(f, to{Mode: millrace.ResizeCubic, Antialias: true, AlignCorners: true}, 3), line()
		}, shape},
		{"resize", func() (*tensor, int) {
			return millrace.Resize(v.Slice(millrace.At(0)).Expand(1<<40), to{Mode: millrace.ResizeLinear, Antialias: true}, 3), line()
		}, shape},
		{"resize", func() (*tensor, int) { return millrace.Resize(i, to{Mode: millrace.ResizeLinear}, 3), line() }, dtype},
		{"einsum", func() (*tensor, int) {
			return millrace.Einsum("i,j,k,l,m,n,o,p,q->ijklmnopq", v, v, v, v, v, v, v, v, v), line()
		}, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij,jk,kl->il", f, f, f), line() }, shape},
		{"einsum", func() (*tensor, int) { return millrace.Einsum("ij,ij,ij->", f, i, f), line() }, dtype},
	})
	checkHandsOn(t, map[string]func(x *tensor) *tensor{
		"fft": func(x *tensor) *tensor { return second(millrace.FFT(x, v, 0)) }, "fft im": func(x *tensor) *tensor {
			if x == nil {
				return first(millrace.FFT(x, x, 0))
			}
			return first(millrace.FFT(v, x, 0))
		},
		"fftn": func(x *tensor) *tensor { return second(millrace.FFTN(x, v)) }, "irfftn": func(x *tensor) *tensor { return millrace.IRFFTN(x, v, 2) },
		"rfft": func(x *tensor) *tensor { return first(millrace.RFFT(x, 0)) }, "irfft": func(x *tensor) *tensor { return millrace.IRFFT(v, x, 2, 0) },
		"conv3d": func(x *tensor) *tensor { return millrace.Conv3d(x, kernels, opt{}) }, "kernels": func(x *tensor) *tensor { return millrace.Conv3d(volume, x, opt{}) },
		"resize": func(x *tensor) *tensor { return millrace.Resize(x, to{}, 3) }, "einsum": func(x *tensor) *tensor { return millrace.Einsum("i,i,i->", v, x, v) },
	})
}
