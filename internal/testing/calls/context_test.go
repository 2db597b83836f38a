package calls_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// TestReadsWithContext checks that a read with a context waits no longer than that, and that the
// tensor can be read again.
func TestReadsWithContext(t *testing.T) {
	dev := openCPU(t, "cpu:threads=1")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	soon, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		want error
	}{"cancelled": {gone, context.Canceled}, "too late": {soon, context.DeadlineExceeded}} {
		x := millrace.UniformOn(dev, millrace.Float32, 1, 1200, 1200)
		for range 4 {
			x = x.MatMul(x).DivScalar(1e5)
		}
		y := x.Slice(millrace.R(0, 1), millrace.R(0, 2))
		dst := []float32{-7, -7}
		if err := millrace.ReadIntoContext(c.ctx, dst, y); !errors.Is(err, c.want) || dst[0] != -7 {
			t.Errorf("%s: %v, read %v", name, err, dst)
		}
		if _, err := millrace.ItemContext[float32](c.ctx, y.Slice(millrace.At(0), millrace.At(0))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := millrace.ReadIntoContext(context.Background(), dst, y); err != nil || dst[0] == -7 {
			t.Errorf("%s: afterwards %v, %v", name, dst, err)
		}
		v, err := millrace.ItemContext[float32](noContext, y.Slice(millrace.At(0), millrace.At(1)))
		if err != nil || v != dst[1] {
			t.Errorf("%s: afterwards %v, %v", name, v, err)
		}
	}
	f := millrace.FromSlice([]float32{1, 2})
	err := millrace.ReadIntoContext(noContext, make([]float32, 3), f)
	wantError(t, "readinto", err, millrace.ErrShape, line()-1)
	err = millrace.ReadIntoContext(noContext, make([]int32, 2), f)
	wantError(t, "readinto", err, millrace.ErrDType, line()-1)
	_, err = millrace.ItemContext[float32](noContext, f)
	wantError(t, "item", err, millrace.ErrShape, line()-1)
	_, err = millrace.ItemContext[float32](noContext, nil)
	wantError(t, "item", err, nil, line()-1)
	_, err = millrace.ItemContext[float32](context.Background(), f.Reshape(3))
	wantError(t, "item", err, millrace.ErrShape, line()-1)
}

// noContext is the nil context, which reads take as no limit.
var noContext context.Context
