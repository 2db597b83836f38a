package gputest

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/apitest"
)

// testEngineGatherFuses: looking up rows of a table at computed indices, with ops on the result, is
// one kernel. It waits for the device only if an index out of range would be an error.
func testEngineGatherFuses(t *testing.T) {
	d := openEngine(t)
	const rows, width = 37, 64
	data := make([]float32, 50*width)
	for i := range data {
		data[i] = float32(i)
	}
	table := millrace.FromSliceOn(d, data, 50, width)
	at := make([]int32, rows)
	for i := range at {
		at[i] = int32(i * 7 % 25)
	}
	for _, mode := range []millrace.IndexMode{millrace.IndexError, millrace.IndexClamp} {
		before := d.Stats()
		idx := millrace.FromSliceOn(d, at, rows).MulScalar(2)
		got := values(t, table.Take(idx, 0, mode).AddScalar(1).Sum(1))
		for i, v := range got {
			first := float64(2*at[i]) * width
			if want := width * (first + 1 + float64(width-1)/2); math.Abs(float64(v)-want) > 1e-5*want {
				t.Fatalf("mode %v: row %d is %v, want %v", mode, i, v, want)
			}
		}
		after := d.Stats()
		if n := after.Runtime.Launches - before.Runtime.Launches; n != 1 {
			t.Errorf("mode %v: %d kernels, want 1", mode, n)
		}
		if n := after.Runtime.Waits - before.Runtime.Waits; (n != 0) != (mode == millrace.IndexError) {
			t.Errorf("mode %v: %d waits", mode, n)
		}
		if n := after.Fallbacks - before.Fallbacks; n != 0 {
			t.Errorf("mode %v: %d fallbacks", mode, n)
		}
	}
}

// testEngineIndexOutOfRange: an index out of range is an error that names it, the op and the line
// of the call, as on the CPU. Other results stay valid, and the stream stays usable.
func testEngineIndexOutOfRange(t *testing.T) {
	d := openEngine(t)
	x := millrace.FromSliceOn(d, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	for _, c := range []struct {
		name  string
		index string
		call  func(at *millrace.Tensor) *millrace.Tensor
	}{
		{"take", "3", func(at *millrace.Tensor) *millrace.Tensor { return x.Take(at, 0) }},
		{"take behind a product", "3", func(at *millrace.Tensor) *millrace.Tensor { return x.Square().Take(at, 0).AddScalar(1) }},
		{"takealong", "3", func(at *millrace.Tensor) *millrace.Tensor { return x.TakeAlong(at.Reshape(1, 2), 0) }},
		{"crossentropy", "3", func(at *millrace.Tensor) *millrace.Tensor { return millrace.CrossEntropy(x.T(), at) }},
		{"softmax", "3", func(at *millrace.Tensor) *millrace.Tensor { return x.Take(at, 0).Softmax(1) }},
		{"matmul", "3", func(at *millrace.Tensor) *millrace.Tensor { return x.Take(at, 0).MatMul(x.T()).AddScalar(1) }},
		{"take of a negative index", "-4", func(at *millrace.Tensor) *millrace.Tensor {
			return x.Take(at.MulScalar(0).SubScalar(4), 0)
		}},
	} {
		for range 2 { // a new plan, a known one
			at := millrace.FromSliceOn(d, []int32{0, 3})
			beside := x.AddScalar(1)
			apitest.FailsAtIndex(t, c.name, c.call(at), "gather", c.index, "engine_gather.go")
			apitest.Holds(t, c.name+", beside it", beside, 2, 3, 4, 5, 6, 7)
			for _, mode := range []millrace.IndexMode{millrace.IndexClamp, millrace.IndexDrop} {
				if err := x.Take(at, 0, mode).Eval(); err != nil {
					t.Errorf("%s, mode %v: %v", c.name, mode, err)
				}
			}
		}
	}
}
