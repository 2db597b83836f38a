package apitest

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestIndexOutOfRange: an index out of range is an error that names it, the op and the line of the
// call. Other results stay valid, and the stream stays usable.
func TestIndexOutOfRange(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		x := millrace.FromSliceOn(dev, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
		for _, c := range []struct {
			name, op, index string
			call            func(at *tensor) *tensor
		}{
			{"take", "gather", "3", func(at *tensor) *tensor { return x.Take(at, 0) }},
			{"take behind a product", "gather", "3", func(at *tensor) *tensor { return x.Square().Take(at, 0).AddScalar(1) }},
			{"takealong", "gather", "3", func(at *tensor) *tensor { return x.TakeAlong(at.Reshape(1, 2), 0) }},
			{"crossentropy", "gather", "3", func(at *tensor) *tensor { return millrace.CrossEntropy(x.T(), at) }},
			{"scatteradd", "scatter", "3", func(at *tensor) *tensor { return x.ScatterAdd(at.Reshape(2, 1), x.Slice(millrace.R(0, 2)), 0) }},
			{"indexset", "scatter", "3", func(at *tensor) *tensor {
				return x.Square().IndexSet(at, x.Slice(millrace.R(0, 2)).Exp(), 0).AddScalar(1)
			}},
			{"indexadd of what is looked up", "gather", "3", func(at *tensor) *tensor { return x.IndexAdd(at.MulScalar(0), x.Take(at, 0), 0) }},
			{"put at a negative index", "scatter", "-4", func(at *tensor) *tensor {
				return x.IndexAdd(at.MulScalar(0).SubScalar(4), x.Slice(millrace.R(0, 2)), 0)
			}},
			{"take of a negative index", "gather", "-4", func(at *tensor) *tensor { return x.Take(at.MulScalar(0).SubScalar(4), 0) }},
		} {
			for _, dt := range []millrace.DType{millrace.Int32, millrace.Int64} {
				at := millrace.FromSliceOn(dev, []int32{0, 3}).Cast(dt)
				beside := x.AddScalar(1)
				FailsAtIndex(t, c.name, c.call(at), c.op, c.index, "fault_index_test.go")
				Holds(t, c.name+", beside it", beside, 2, 3, 4, 5, 6, 7)
				for _, mode := range []millrace.IndexMode{millrace.IndexClamp, millrace.IndexDrop} {
					if err := x.Take(at, 0, mode).Eval(); err != nil {
						t.Errorf("%s, mode %v: %v", c.name, mode, err)
					}
					if err := x.IndexSet(at, x.Slice(millrace.R(0, 1)), 0, mode).Eval(); err != nil {
						t.Errorf("indexset, mode %v: %v", mode, err)
					}
				}
			}
		}
	})
}

// TestIndexOutOfRangeKeepsOperands: a kernel with an index out of range is run again op by op. Its
// operands must still exist for that, even if nothing else needs them: the indices, or the operands
// of its other results.
func TestIndexOutOfRangeKeepsOperands(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		table := millrace.FromSliceOn(dev, []int32{0, 1, 2}, 3)
		at := millrace.FromSliceOn(dev, []int32{1, 5}, 2)
		y := table.Take(at, 0)
		at.Release()
		if v, err := millrace.Values[int32](y); !errors.Is(err, millrace.ErrIndex) || !strings.Contains(err.Error(), "index 5") {
			t.Errorf("released indices: %v, %v, want ErrIndex", v, err)
		}
		at = millrace.FromSliceOn(dev, []int32{1, 5}, 2)
		x := millrace.FromSliceOn(dev, []int32{1, 2}, 2)
		y, z := table.Take(at, 0).Add(x), x.MulScalar(2)
		x.Release()
		if v, err := millrace.Values[int32](y); !errors.Is(err, millrace.ErrIndex) {
			t.Errorf("sum: %v, %v, want ErrIndex", v, err)
		}
		if v, err := millrace.Values[int32](z); err != nil || v[0] != 2 || v[1] != 4 {
			t.Errorf("beside it: %v, %v, want [2 4]", v, err)
		}
	})
}
