package cpu

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
)

// TestSortRow compares sorts of every dtype with their definition, around the sizes where the
// algorithm changes.
func TestSortRow(t *testing.T) {
	for _, dt := range kerneltest.DTypes {
		rng := rand.New(rand.NewPCG(8, uint64(dt)))
		size := int64(dt.Size())
		for _, n := range []int64{0, 1, 2, 3, insertedRow - 1, insertedRow, insertedRow + 1, 100, 300, 5000} {
			for _, few := range []bool{false, true} { // equal elements, and bytes that all keys share
				values, row := make([]byte, n*size+8), make([]uint64, n)
				for i := range n {
					if row[i] = kerneltest.Value(rng, dt); few && i > 2 {
						row[i] = row[rng.IntN(3)]
					}
					storeElement(unsafe.Pointer(&values[i*size]), int32(size), row[i])
				}
				for _, descending := range []bool{false, true} {
					order := ir.SortOrder(dt, row, descending)
					work := make([]uint64, sortBytes(n)/8)
					for _, o := range []rowOp{{size: size}, {size: 4, positions: true}, {size: 8, positions: true}} {
						o.dt, o.descending = dt, descending
						got := make([]byte, n*o.size+8)
						sortRow(&o, unsafe.Pointer(&got[0]), unsafe.Pointer(&values[0]), n, unsafe.Pointer(&work[0]))
						for i := range n {
							x := element(unsafe.Pointer(&got[i*o.size]), int32(o.size))
							if o.positions && x != uint64(order[i]) || !o.positions && !ir.SameValue(dt, x, row[order[i]]) {
								t.Fatalf("%v, %d elements, descending %v, positions %v: number %d is %#x", dt, n, descending, o.positions, i, x)
							}
						}
					}
				}
			}
		}
	}
}
