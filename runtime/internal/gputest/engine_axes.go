package gputest

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
)

// testEngineRecordingAxes: a Recording adapts to other sizes of its axes without a call, a plan or
// a shader, and gives the bits of its function.
func testEngineRecordingAxes(t *testing.T) {
	d := openEngine(t)
	s := d.NewStream()
	weight := millrace.NormalOn(d, millrace.Float32, 1, 8, 4)
	f := func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		y := in[0].MatMul(weight)
		n := y.Shape()[0]
		return []*millrace.Tensor{y.Softmax(-1), y.Reshape(2*n, 2).Sum(0).MulScalar(1 / float64(n)), y.Slice(millrace.R(1, n)).Flip(0)}, nil
	}
	rec := millrace.NewRecording(f, millrace.Axes{"n", ""})
	var before millrace.Stats
	for i, n := range []int{8, 16, 24, 40, 56} {
		x := millrace.NormalOn(s, millrace.Float32, 2, n, 8)
		got, err := rec.Run(nil, x)
		must(t, err)
		must(t, d.Wait())
		if now := d.Stats(); i == 1 {
			before = now // sizes have classes, such as those that allow reading several elements at once
		} else if i > 1 && (now.Recordings != 1 || now.Explorations != before.Explorations || now.Resizes != before.Resizes+int64(i-1)) {
			t.Errorf("size %d: %d recordings, %d explorations, %d resizes", n, now.Recordings, now.Explorations-before.Explorations, now.Resizes)
		}
		if err := s.Scope(func(sc *millrace.Scope) error {
			want, err := f(sc, []*millrace.Tensor{x.To(sc)})
			if err != nil {
				return err
			}
			for k := range want {
				a, err := millrace.Values[float32](want[k])
				if err != nil {
					return err
				}
				b, err := millrace.Values[float32](got[k])
				if err != nil {
					return err
				}
				if !slices.Equal(a, b) || !slices.Equal(want[k].Shape(), got[k].Shape()) {
					t.Errorf("size %d, result %d: %v, want %v", n, k, b, a)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		before.Explorations = d.Stats().Explorations // calling the function reads its results one by one
	}
}
