package data_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/nn"
)

// drawing is a pass that draws from r.
func drawing(r *nn.Random, sc *millrace.Scope) *nn.Ctx {
	return nn.NewCtx(nn.CtxOptions{Random: r, Scope: sc})
}

// given replaces random numbers by given ones.
type given struct{ u []float32 }

func (g given) Uniform(shape ...int) *millrace.Tensor { return millrace.FromSlice(g.u, shape...) }

func values[T millrace.Element](t testing.TB, x *millrace.Tensor) []T {
	t.Helper()
	v, err := millrace.Values[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// pixels returns 1, 2, 3 and so on; no pixel equals the zeros of the frame.
func pixels(n, c, h, w int) ([]uint8, *millrace.Tensor) {
	p := make([]uint8, n*c*h*w)
	for i := range p {
		p[i] = uint8(1 + i%250)
	}
	return p, millrace.FromSlice(p, n, c, h, w)
}

// crop computes RandomCrop's result for the vectors dy, dx.
func crop(p []uint8, n, c, h, w int, dy, dx []int) []uint8 {
	out := make([]uint8, len(p))
	for i := range n {
		for k := range c {
			for y := range h {
				for x := range w {
					fy, fx := y+dy[i], x+dx[i]
					if fy >= 0 && fy < h && fx >= 0 && fx < w {
						out[((i*c+k)*h+y)*w+x] = p[((i*c+k)*h+fy)*w+fx]
					}
				}
			}
		}
	}
	return out
}

func TestRandomCrop(t *testing.T) {
	const n, c, h, w = 5, 3, 6, 7
	p, x := pixels(n, c, h, w)
	for _, pad := range []int{0, 1, 2, 9} {
		u := make([]float32, 2*n)
		dy, dx := make([]int, n), make([]int, n)
		for i := range u {
			v := []int{0, 2 * pad, pad, min(1, 2*pad), (i * 3) % (2*pad + 1)}[(i+i/n)%5]
			u[i] = (float32(v) + 0.25) / float32(2*pad+1)
			if v == 2*pad {
				u[i] = math.Nextafter32(1, 0)
			}
			if i < n {
				dy[i] = v - pad
			} else {
				dx[i-n] = v - pad
			}
		}
		y := data.RandomCrop(given{u}, x, pad)
		if got, want := values[uint8](t, y), crop(p, n, c, h, w, dy, dx); !slices.Equal(got, want) {
			t.Errorf("padding %d, by %v and %v:\n%v\nwant\n%v", pad, dy, dx, got, want)
		}
		// Floats, and pixels in another order in memory.
		f := data.RandomCrop(given{u}, x.Cast(millrace.Float32).Flip(3), pad).Flip(3)
		for i := range dx {
			dx[i] = -dx[i]
		}
		if got, want := values[uint8](t, f.Cast(millrace.Uint8)), crop(p, n, c, h, w, dy, dx); !slices.Equal(got, want) {
			t.Errorf("padding %d, flipped", pad)
		}
	}
}

// TestAugmentEmpty: empty batches and images stay empty.
func TestAugmentEmpty(t *testing.T) {
	r := drawing(nn.NewRandom(1), nil)
	for _, shape := range [][]int{{0, 3, 4, 4}, {2, 0, 4, 4}, {2, 3, 0, 4}, {2, 3, 4, 0}} {
		y := data.RandomFlip(r, data.RandomCrop(r, millrace.Zeros(millrace.Uint8, shape...), 2))
		if v := values[uint8](t, y); len(v) != 0 || !slices.Equal(y.Shape(), shape) {
			t.Errorf("%v becomes %v, %v", shape, y.Shape(), v)
		}
	}
}

func TestRandomFlip(t *testing.T) {
	const n, c, h, w = 4, 2, 3, 5
	p, x := pixels(n, c, h, w)
	got := values[uint8](t, data.RandomFlip(given{[]float32{0.1, 0.9, 0.5, 0.49}}, x))
	for i, turned := range []bool{true, false, false, true} {
		for r := range c * h {
			row := slices.Clone(p[(i*c*h+r)*w : (i*c*h+r+1)*w])
			if turned {
				slices.Reverse(row)
			}
			if g := got[(i*c*h+r)*w : (i*c*h+r+1)*w]; !slices.Equal(g, row) {
				t.Errorf("image %d, row %d: %v, want %v", i, r, g, row)
			}
		}
	}
}

func TestNormalize(t *testing.T) {
	p, x := pixels(2, 3, 2, 2)
	mean, std := []float64{0.5, 0.25, 0.1}, []float64{0.2, 0.3, 2}
	for name, y := range map[string]*millrace.Tensor{
		"uint8": data.Normalize(x, mean, std), "float32": data.Normalize(x.Cast(millrace.Float32).DivScalar(255), mean, std),
	} {
		for i, got := range values[float32](t, y) {
			c := i / 4 % 3
			want := (float32(p[i])/255 - float32(mean[c])) / float32(std[c])
			if got != want {
				t.Errorf("%s: element %d is %v, want %v", name, i, got, want)
			}
		}
	}
	half := data.Normalize(x.Cast(millrace.BFloat16), mean, std)
	if half.DType() != millrace.BFloat16 || half.Err() != nil {
		t.Errorf("of bfloat16: %v, %v", half.DType(), half.Err())
	}
	flat := data.Normalize(millrace.FromSlice([]float32{1, 2, 3, 4}, 2, 2), []float64{1, 2}, []float64{2, 1})
	if got := fmt.Sprint(values[float32](t, flat)); got != "[0 0 1 2]" {
		t.Errorf("of a matrix: %s", got)
	}
}

// TestAugmentDTypesAndRanks calls each function with every dtype, ranks 0 to 5 and no random numbers.
// It has a result, or an error with the line.
func TestAugmentDTypesAndRanks(t *testing.T) {
	r := drawing(nn.NewRandom(1), nil)
	line := func() int { _, _, n, _ := runtime.Caller(1); return n }
	two := []float64{1, 2}
	anyDType := func(millrace.DType) bool { return true }
	for name, c := range map[string]struct {
		call   func(x *millrace.Tensor) (*millrace.Tensor, int)
		dtypes func(dt millrace.DType) bool
		ranks  [2]int
	}{
		"crop":            {func(x *millrace.Tensor) (*millrace.Tensor, int) { return data.RandomCrop(r, x, 1), line() }, anyDType, [2]int{4, 4}},
		"flip":            {func(x *millrace.Tensor) (*millrace.Tensor, int) { return data.RandomFlip(r, x), line() }, anyDType, [2]int{4, 4}},
		"normalize":       {func(x *millrace.Tensor) (*millrace.Tensor, int) { return data.Normalize(x, two, two), line() }, func(dt millrace.DType) bool { return dt.IsFloat() || dt == millrace.Uint8 }, [2]int{2, 5}},
		"crop of nothing": {func(x *millrace.Tensor) (*millrace.Tensor, int) { return data.RandomCrop(nil, x, 1), line() }, anyDType, [2]int{6, 6}},
		"flip of nothing": {func(x *millrace.Tensor) (*millrace.Tensor, int) { return data.RandomFlip(nil, x), line() }, anyDType, [2]int{6, 6}},
	} {
		for _, dt := range []millrace.DType{millrace.Bool, millrace.Int8, millrace.Int64, millrace.Uint8, millrace.Uint64, millrace.Float16, millrace.BFloat16, millrace.Float32, millrace.Float64} {
			for rank := range 6 {
				y, at := c.call(millrace.Ones(dt, slices.Repeat([]int{2}, rank)...))
				good := c.dtypes(dt) && rank >= c.ranks[0] && rank <= c.ranks[1]
				var op *millrace.OpError
				if err := y.Err(); good != (err == nil) || err != nil && (!errors.As(err, &op) || !strings.HasSuffix(op.Caller, fmt.Sprintf("augment_test.go:%d", at))) {
					t.Errorf("%s of %v, rank %d: %v", name, dt, rank, err)
				}
			}
		}
	}
}

func TestAugmentBadInput(t *testing.T) {
	r := drawing(nn.NewRandom(1), nil)
	_, x := pixels(1, 3, 4, 4)
	gone := x.AddScalar(1)
	gone.Release()
	for name, c := range map[string]struct {
		got  *millrace.Tensor
		want error
	}{
		"crop of a matrix":  {data.RandomCrop(r, millrace.Zeros(millrace.Uint8, 3, 3), 1), millrace.ErrShape},
		"crop":              {data.RandomCrop(r, x, -1), millrace.ErrShape},
		"wide crop":         {data.RandomCrop(r, x, math.MaxInt16+1), millrace.ErrShape},
		"large crop":        {data.RandomCrop(r, millrace.Zeros(millrace.Uint8, 1, 1, 1, 1<<25), 64), millrace.ErrShape},
		"crop of released":  {data.RandomCrop(r, gone, 1), millrace.ErrReleased},
		"flip of a matrix":  {data.RandomFlip(r, millrace.Zeros(millrace.Uint8, 3, 3)), millrace.ErrShape},
		"flip of released":  {data.RandomFlip(r, gone), millrace.ErrReleased},
		"channels":          {data.Normalize(x, []float64{1}, []float64{1}), millrace.ErrShape},
		"deviations":        {data.Normalize(x, []float64{1, 1, 1}, []float64{1, 1}), millrace.ErrShape},
		"zero deviation":    {data.Normalize(x, []float64{1, 1, 1}, []float64{1, 0, 1}), millrace.ErrShape},
		"nan":               {data.Normalize(x, []float64{1, math.NaN(), 1}, []float64{1, 1, 1}), millrace.ErrShape},
		"vector":            {data.Normalize(millrace.Ones(millrace.Float32, 3), nil, nil), millrace.ErrShape},
		"int32":             {data.Normalize(x.Cast(millrace.Int32), []float64{1, 1, 1}, []float64{1, 1, 1}), millrace.ErrDType},
		"bool":              {data.Normalize(x.EqScalar(1), []float64{1, 1, 1}, []float64{1, 1, 1}), millrace.ErrDType},
		"normalize of gone": {data.Normalize(gone, []float64{1, 1, 1}, []float64{1, 1, 1}), millrace.ErrReleased},
	} {
		err := c.got.Err()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if oe, ok := errors.AsType[*millrace.OpError](err); ok && !strings.Contains(oe.Caller, "augment_test.go") {
			t.Errorf("%s: the caller is %s", name, oe.Caller)
		}
	}
}

func device(t testing.TB) *millrace.Device {
	t.Helper()
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAugmentInRecording: in a Recording each run shifts and flips the images anew, by the same
// numbers as without one.
func TestAugmentInRecording(t *testing.T) {
	const n, runs = 6, 5
	_, x := pixels(n, 3, 8, 8)
	s := device(t).NewStream()
	defer s.Close()
	augment := func(r *nn.Random, sc *millrace.Scope, x *millrace.Tensor) (*millrace.Tensor, error) {
		c := drawing(r, sc)
		y := data.RandomFlip(c, data.RandomCrop(c, x, 2))
		return data.Normalize(y, []float64{0.5, 0.5, 0.5}, []float64{0.2, 0.2, 0.2}), c.Commit()
	}
	var want [][]float32
	plain := nn.NewRandom(9, nn.On(s))
	for range runs {
		y, err := augment(plain, nil, x.To(s))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, values[float32](t, y))
	}
	if slices.Equal(want[0], want[1]) {
		t.Error("two runs give the same")
	}
	r := nn.NewRandom(9, nn.On(s))
	calls := 0
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		calls++
		y, err := augment(r, sc, in[0])
		return []*millrace.Tensor{y}, err
	})
	defer rec.Release()
	for k := range runs {
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, x)
		if err != nil {
			t.Fatal(err)
		}
		if got := values[float32](t, out[0]); !slices.Equal(got, want[k]) {
			t.Errorf("run %d differs from what is computed without a recording", k)
		}
	}
	if calls != 1 {
		t.Errorf("the function was called %d times", calls)
	}
}

// TestAugmentFuses: pixels are shifted, flipped and normalised in one kernel. The kernels before it
// compute only an index for each pixel of an image, and some numbers for each image.
func TestAugmentFuses(t *testing.T) {
	dev, err := millrace.Open("cpu:threads=1,explore=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const n, c, h, w = 8, 3, 16, 16
	x := millrace.FromSliceOn(dev, make([]uint8, n*c*h*w), n, c, h, w)
	r := nn.NewRandom(1, nn.On(dev))
	before := dev.Stats()
	err = dev.Scope(func(sc *millrace.Scope) error {
		c := drawing(r, sc)
		y := data.RandomFlip(c, data.RandomCrop(c, x.To(sc), 4))
		return data.Normalize(y, []float64{1, 1, 1}, []float64{1, 2, 3}).Eval()
	})
	if err != nil {
		t.Fatal(err)
	}
	s := dev.Stats()
	// Pixels are read as bytes, once straight and once flipped, and written as floats once.
	if k, wrote := s.Kernels-before.Kernels, s.Runtime.BytesWritten-before.Runtime.BytesWritten; s.Segments-before.Segments != 1 || k > 6 || wrote > 4*n*(c+1)*h*w+1<<12 {
		t.Errorf("%d segments, %d kernels, %d bytes written", s.Segments-before.Segments, k, wrote)
	}
}

// TestAugmentLeavesNothing: intermediate results are released with the op, also outside of a scope.
func TestAugmentLeavesNothing(t *testing.T) {
	dev, err := millrace.Open("cpu:cache=off,compile=off,explore=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x := millrace.FromSliceOn(dev, make([]uint8, 4*3*8*8), 4, 3, 8, 8)
	before := dev.Stats().LiveBytes
	for range 3 {
		r := on{dev}
		cropped := data.RandomCrop(r, x, 2)
		flipped := data.RandomFlip(r, cropped)
		y := data.Normalize(flipped, []float64{1, 1, 1}, []float64{1, 2, 3})
		if err := y.Eval(); err != nil {
			t.Fatal(err)
		}
		for _, t := range []*millrace.Tensor{cropped, flipped, y} {
			t.Release()
		}
		if err := dev.Sync(nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := dev.Stats().LiveBytes - before; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// on draws halves on a device.
type on struct{ dev *millrace.Device }

func (o on) Uniform(shape ...int) *millrace.Tensor {
	return millrace.FullOn(o.dev, millrace.Float32, 0.5, shape...)
}
