package apitest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestRecordingRelease: a released recording frees the memory of tensors from elsewhere, and works
// again; so does one whose recording is replaced.
func TestRecordingRelease(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	const n = 1 << 18
	calls := 0
	r := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		calls++
		c := millrace.FullOn(sc, millrace.Float32, 5, n) // in memory: it is no part of the replay
		if err := c.Eval(); err != nil {
			return nil, err
		}
		own := millrace.FromSliceOn(sc, make([]float32, n), n)
		return []*millrace.Tensor{in[0].Add(c).Add(own)}, nil
	})
	s := dev.NewStream()
	live := func() int64 { return dev.Stats().LiveBytes }
	before := live()
	run := func(size, want int) {
		t.Helper()
		x := millrace.FromSliceOn(s, make([]float32, size), size)
		defer x.Release()
		out, err := r.RunWith(nil, millrace.RunOptions{On: s}, x)
		if err != nil {
			t.Fatal(err)
		}
		defer out[0].Release()
		if got, err := millrace.Values[float32](out[0]); err != nil || got[n-1] != 5 {
			t.Errorf("%v, %v", got[n-1], err)
		}
		if calls != want {
			t.Errorf("%d calls, want %d", calls, want)
		}
	}
	run(n, 1)
	run(n, 1)
	kept := live() - before
	if kept < 4*n {
		t.Errorf("%d bytes are kept, want the constant's", kept)
	}
	run(1, 2)
	run(1, 2)
	if got := live() - before; got != kept {
		t.Errorf("%d bytes are kept by the second recording, %d were by the first", got, kept)
	}
	r.Release()
	r.Release()
	if got := live() - before; got != 0 {
		t.Errorf("%d bytes are left", got)
	}
	run(1, 3)
	r.Release()
	(*millrace.Recording)(nil).Release()
}

// TestRecordingReleaseWhileRunning: a recording is released while it runs, on several streams.
func TestRecordingReleaseWhileRunning(t *testing.T) {
	dev := openSpec(t, "cpu:compile=off")
	c := millrace.FromSliceOn(dev, []float32{1, 2, 3}, 3)
	r := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].Add(c), c}, nil
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := dev.NewStream()
			x := millrace.FromSliceOn(s, []float32{1, 1, 1}, 3)
			for i := range 200 {
				out, err := r.RunWith(nil, millrace.RunOptions{On: s}, x)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := millrace.Values[float32](out[0])
				same, err2 := millrace.Values[float32](out[1])
				if err := errors.Join(err, err2); err != nil || !slices.Equal(got, []float32{2, 3, 4}) || !slices.Equal(same, []float32{1, 2, 3}) {
					t.Errorf("%v, %v, %v", got, same, err)
				}
				out[0].Release()
				out[1].Release()
				if i%5 == 0 {
					r.Release()
				}
			}
		})
	}
	wg.Wait()
}
