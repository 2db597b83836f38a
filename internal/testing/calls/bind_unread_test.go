package calls_test

import (
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestBindKeepsValuesOfOthers checks that Bind leaves the value of a tensor that the recording only
// sets, even if a second handle keeps that value, so that a run needs other memory.
func TestBindKeepsValuesOfOthers(t *testing.T) {
	dev, s := bindings(t)
	w := millrace.FromSliceOn(dev, []float64{1, 2, 3}, 3)
	x := millrace.FromSliceOn(dev, []float64{4, 5, 6}, 3)
	must(t, w.Eval())
	same := w.Reshape(3)
	must(t, same.Eval())
	b, err := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		w.Set(in[0].MulScalar(2))
		return nil, nil
	}).BindWith(millrace.BindOptions{On: s}, x)
	must(t, err)
	floats(t, w, 1, 2, 3)
	must(t, b.Run())
	floats(t, w, 8, 10, 12)
	floats(t, same, 1, 2, 3)
}

// TestBoundValuesWhileRunning checks that a reader sees the value before a run or the one after it,
// also if the run needs other memory because another handle keeps the old value.
func TestBoundValuesWhileRunning(t *testing.T) {
	dev, s := bindings(t)
	const n = 1000
	w := millrace.FullOn(dev, millrace.Float64, 1, n)
	x := millrace.FullOn(dev, millrace.Float64, 1, n)
	must(t, w.Eval())
	b, err := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		w.Set(in[0].AddScalar(1))
		return nil, nil
	}).BindWith(millrace.BindOptions{On: s}, x)
	must(t, err)
	must(t, b.Run())
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			got, err := millrace.Values[float64](w)
			if err != nil {
				t.Error(err)
				return
			}
			for _, v := range got {
				if v != 2 {
					t.Errorf("a reader saw %v", v)
					return
				}
			}
		}
	})
	for range 200 {
		old := w.Reshape(n/10, 10)
		must(t, old.Eval())
		junk := millrace.FullOn(dev, millrace.Float64, 77, n) // its memory is freed for the next run
		must(t, junk.Eval())
		junk.Release()
		must(t, b.Run())
		old.Release()
		must(t, b.RunN(20)) // enough to try other memory again
	}
	close(done)
	readers.Wait()
}
