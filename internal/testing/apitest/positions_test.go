package apitest

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// TestPositionsOfViews: positions count along the row in reading order, whatever its layout in
// memory: backwards, in steps, or every element the same.
func TestPositionsOfViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		for _, n := range []int{2, 7, 100, 5000} { // the last is more than a block
			data := make([]int64, 3*n)
			for i := range data {
				data[i] = int64(i * 7919 % (2 * n))
			}
			for _, dt := range []millrace.DType{millrace.Int64, millrace.Float32, millrace.Uint32, millrace.Int8} {
				if dt == millrace.Int8 && n > 60 {
					continue // values beyond it
				}
				x := millrace.FromSliceOn(dev, data, 3, n).Cast(dt)
				inMemory(t, x)
				for name, view := range map[string]struct {
					x        *millrace.Tensor
					at, step int // of a row's elements
				}{
					"flipped":         {x.Flip(1), n - 1, -1},
					"flipped, halved": {x.Flip(1).Slice(millrace.Range{}, millrace.R(0, n, 2)), n - 1, -2},
					"halved":          {x.Slice(millrace.Range{}, millrace.R(0, n, 2)), 0, 2},
					"expanded":        {x.Slice(millrace.Range{}, millrace.R(1, 2)).Expand(3, n), 1, 0},
				} {
					size := view.x.Shape()[1]
					greatest, err := millrace.Values[int64](view.x.ArgMax(1))
					if err != nil {
						t.Fatal(err)
					}
					least, err := millrace.Values[int64](view.x.ArgMin(1))
					if err != nil {
						t.Fatal(err)
					}
					for row := range 3 {
						most, fewest := 0, 0
						of := func(i int) int64 { return data[row*n+view.at+i*view.step] }
						for i := range size {
							if of(i) > of(most) {
								most = i
							}
							if of(i) < of(fewest) {
								fewest = i
							}
						}
						if greatest[row] != int64(most) || least[row] != int64(fewest) {
							t.Errorf("%d, %s, %v, row %d: greatest at %d, least at %d, want %d and %d", n, name, dt, row, greatest[row], least[row], most, fewest)
						}
					}
				}
			}
		}
	})
}
