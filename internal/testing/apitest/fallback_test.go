package apitest

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/fault"
)

// TestRefusedLaunchRunsOpByOp: a launch that the CPU device refuses is run op by op instead: the
// values are right, and the fallback is counted.
func TestRefusedLaunchRunsOpByOp(t *testing.T) {
	defer fault.Reset()
	dev := open(t, millrace.Options{Compile: millrace.CompileOff})
	x := millrace.FromSliceOn(dev, []float32{1, 2})
	y := x.AddScalar(1).MulScalar(3)
	fault.Set(fault.Launch, 1)
	got, err := millrace.Values[float32](y)
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != 6 || got[1] != 9 {
		t.Errorf("got %v, want [6 9]", got)
	}
	if n := dev.Stats().Fallbacks; n != 1 {
		t.Errorf("%d fallbacks, want 1", n)
	}
}
