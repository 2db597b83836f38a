package apitest

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// An index out of range is an error that names it, the op and the line of the
// call; what was computed beside it stays, and the stream stays usable.
func TestIndexOutOfRange(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		x := millrace.FromSliceOn(dev, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
		for _, c := range []struct {
			name  string
			index string
			call  func(at *tensor) *tensor
		}{
			{"take", "3", func(at *tensor) *tensor { return x.Take(at, 0) }},
			{"take behind a product", "3", func(at *tensor) *tensor { return x.Square().Take(at, 0).AddScalar(1) }},
			{"takealong", "3", func(at *tensor) *tensor { return x.TakeAlong(at.Reshape(1, 2), 0) }},
			{"crossentropy", "3", func(at *tensor) *tensor { return millrace.CrossEntropy(x.T(), at) }},
			{"take of a negative index", "-4", func(at *tensor) *tensor { return x.Take(at.MulScalar(0).SubScalar(4), 0) }},
		} {
			for _, dt := range []millrace.DType{millrace.Int32, millrace.Int64} {
				at := millrace.FromSliceOn(dev, []int32{0, 3}).Cast(dt)
				beside := x.AddScalar(1)
				_, err := millrace.Values[float32](c.call(at))
				var op *millrace.OpError
				if !errors.Is(err, millrace.ErrIndex) || !errors.As(err, &op) {
					t.Errorf("%s: %v, want ErrIndex", c.name, err)
					continue
				}
				if !strings.Contains(op.Caller, "fault_index_test.go") || !strings.Contains(err.Error(), c.index) {
					t.Errorf("%s: names neither line nor index %s: %v", c.name, c.index, err)
				}
				if v, err := millrace.Values[float32](beside); err != nil || v[5] != 7 {
					t.Errorf("%s: beside it: %v, %v", c.name, v, err)
				}
				for _, mode := range []millrace.IndexMode{millrace.IndexClamp, millrace.IndexDrop} {
					if err := x.Take(at, 0, mode).Eval(); err != nil {
						t.Errorf("%s, mode %v: %v", c.name, mode, err)
					}
				}
			}
		}
	})
}
