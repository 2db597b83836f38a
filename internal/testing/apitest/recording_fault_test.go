package apitest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/fault"
)

// TestRecordingFaults: refused memory, and failing launches, from each step on of a recording that
// is made or replayed. The results are right or there is an error, nothing is left behind, and the
// next run is right.
func TestRecordingFaults(t *testing.T) {
	defer fault.Reset()
	for _, point := range []string{fault.Alloc, fault.Launch} {
		for _, again := range []bool{false, true} {
			failed := 0
			for step := range 12 {
				t.Run(fmt.Sprint(point, "/again=", again, "/", step), func(t *testing.T) {
					if faulty(t, point, step, again) {
						failed++
					}
				})
			}
			if point == fault.Alloc && failed == 0 {
				t.Errorf("%s, again=%v: no step failed", point, again)
			}
		}
	}
}

// faulty runs a recording with faults from a step on, and reports whether it failed.
func faulty(t *testing.T, point string, step int, again bool) (failed bool) {
	const n = 1000
	dev := openSpec(t, "cpu:compile=off")
	s := dev.NewStream()
	c := millrace.FromSliceOn(dev, slices.Repeat([]float32{2}, n), n)
	r := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		x := in[0]
		for range 3 { // one segment each
			x = x.Mul(c).Max(0).Add(in[1])
			if err := x.Eval(); err != nil {
				return nil, err
			}
		}
		return []*millrace.Tensor{x, x.Neg(), c, in[1]}, nil
	})
	run := func(faults int) error {
		t.Helper()
		x, y := millrace.FromSliceOn(s, slices.Repeat([]float32{1}, n), n), millrace.FromSliceOn(s, slices.Repeat([]float32{3}, n), n)
		defer x.Release()
		defer y.Release()
		if err := errors.Join(x.Err(), y.Err()); err != nil {
			t.Fatal(err)
		}
		fault.SetAfter(point, step, faults) // a single fault would have no effect: everything is tried again
		out, err := r.RunWith(nil, millrace.RunOptions{On: s, Give: []bool{step%2 == 0, false}}, x, y)
		fault.Reset()
		for i, o := range out {
			got, err := millrace.Values[float32](o)
			if want := []float32{29, -29, 2, 3}[i]; err != nil || got[n-1] != want { // ((1·2+3)·2+3)·2+3
				t.Errorf("result %d: %v, want %v (%v)", i, got, want, err)
			}
			o.Release()
		}
		return err
	}
	if again {
		if err := run(0); err != nil {
			t.Fatal(err)
		}
	}
	before := dev.Stats().LiveBytes
	failed = run(-1) != nil
	if got := dev.Stats().LiveBytes - before; got != 0 && (again || failed) {
		t.Errorf("%d bytes are left", got)
	}
	if err := run(0); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	r.Release()
	c.Release()
	if got := dev.Stats().LiveBytes; got != 0 {
		t.Errorf("%d bytes are left in the end", got)
	}
	return failed
}
