package gomlxbackend

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// Graphs of draws share the tables of steps, whatever their sizes, and a short draw gives the first
// numbers of a long one.
func TestRandomTablesAreShared(t *testing.T) {
	b := openBackend(t, "cpu")
	draw := func(dt dtypes.DType, n int) []uint64 {
		bd := b.Builder("draw")
		f := bd.Main()
		state := must(f.Parameter("state", compute.RNGStateShape, nil))
		_, bits, err := f.RNGBitGenerator(state, shapes.Make(dt, n))
		if err := f.Return([]compute.Value{must(bits, err)}, nil); err != nil {
			t.Fatal(err)
		}
		e := must(bd.Compile())
		defer e.Finalize()
		in := must(b.BufferFromFlatData(0, []uint64{1, 2, 3}, compute.RNGStateShape))
		out := must(e.Execute([]compute.Buffer{in}, nil, 0))[0]
		list := make([]uint64, n)
		if dt == dtypes.Uint64 {
			err = out.ToFlatData(list)
		} else {
			half := make([]uint32, n)
			err = out.ToFlatData(half)
			for i, x := range half {
				list[i] = uint64(x)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, dt := range []dtypes.DType{dtypes.Uint64, dtypes.Uint32} {
		all := draw(dt, 5000)
		for _, n := range []int{1, 2, 7, 1000, 1023, 1024, 1025, 2048, 2049} {
			if got := draw(dt, n); !slices.Equal(got, all[:n]) {
				t.Errorf("%d draws of %s are not the first of 5000", n, dt)
			}
		}
	}
	if n := len(b.tables); n != 13 {
		t.Errorf("%d tables, want 4 within a block for each width, 4 to a block, and the halves", n)
	}
}
