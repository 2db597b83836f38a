package gputest

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

func openEngine(t *testing.T) *millrace.Device { return openWith(t) }

// openSettled opens a device that searches plans before it runs and tunes nothing: what it counts does
// not depend on how fast the machine searches.
func openSettled(t *testing.T) *millrace.Device { return openWith(t, "explore=wait", "tune=off") }

func openWith(t *testing.T, options ...string) *millrace.Device {
	t.Helper()
	d, err := millrace.Open(under.device(options...))
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// openCPU opens a CPU device with these options, to compare with.
func openCPU(t *testing.T, options string) *millrace.Device {
	t.Helper()
	d, err := millrace.Open("cpu:" + options)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// values reads a float32 tensor.
func values(t *testing.T, x *millrace.Tensor) []float32 {
	t.Helper()
	v, err := millrace.Values[float32](x)
	must(t, err)
	return v
}

// noFallbacks checks that every plan of a device ran as it was made.
func noFallbacks(t *testing.T, d *millrace.Device) {
	t.Helper()
	if n := d.Stats().Fallbacks; n != 0 {
		t.Errorf("%d fallbacks", n)
	}
}

// testEngineFuses: a GELU of public ops is one kernel, and a second batch size compiles nothing.
func testEngineFuses(t *testing.T) {
	d := openEngine(t)
	gelu := func(rows int) []float32 {
		data := make([]float32, rows*64)
		for i := range data {
			data[i] = float32(i%257)/32 - 4
		}
		x := millrace.FromSliceOn(d, data, rows, 64)
		y := x.Mul(x.MulScalar(math.Sqrt2 / 2).Erf().AddScalar(1)).MulScalar(0.5)
		got := values(t, y)
		for i, v := range data {
			want := float64(v) * (math.Erf(float64(v)/math.Sqrt2) + 1) / 2
			if math.Abs(float64(got[i])-want) > 2e-6 {
				t.Fatalf("gelu(%v) = %v, want %v", v, got[i], want)
			}
		}
		return got
	}
	before := d.Stats()
	gelu(32)
	first := d.Stats()
	if n := first.Runtime.Launches - before.Runtime.Launches; n != 1 {
		t.Errorf("%d kernels, want 1", n)
	}
	gelu(31)
	gelu(7)
	if n := d.Stats().Runtime.Compiles - first.Runtime.Compiles; n != 0 {
		t.Errorf("%d compiles for other batch sizes", n)
	}
}

// testEngineUnsupported: ops that shaders lack are rejected when they are recorded.
func testEngineUnsupported(t *testing.T) {
	d := openEngine(t)
	for _, x := range []*millrace.Tensor{
		millrace.FromSliceOn(d, []float64{1}, 1),
		millrace.FromSliceOn(d, []int64{1}, 1),
		millrace.FromSliceOn(d, []uint64{1}, 1),
		millrace.FromSliceOn(d, []float32{1}, 1).Cast(millrace.Float64),
		millrace.FromSliceOn(d, []float32{1}, 1).Take(millrace.FromSliceOn(d, []int32{0}, 1).Cast(millrace.Int64), 0),
	} {
		err := x.Err()
		if !errors.Is(err, millrace.ErrUnsupported) || !strings.Contains(err.Error(), "engine.go") {
			t.Errorf("%v, want ErrUnsupported and this line", err)
		}
	}
}

// testSquareOfRoot: some drivers simplify sqrt(x)*sqrt(x) to |x|.
func testSquareOfRoot(t *testing.T) {
	d := openEngine(t)
	x := millrace.FromSliceOn(d, []float32{-3.75, 4})
	got := values(t, x.Sqrt().Square().AddScalar(0.5))
	if !math.IsNaN(float64(got[0])) || math.Abs(float64(got[1])-4.5) > 1e-5 {
		t.Errorf("got %v, want [NaN 4.5]", got)
	}
}
