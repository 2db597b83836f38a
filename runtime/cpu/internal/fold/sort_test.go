package fold

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// TestSortRow compares sorts of every dtype with their definition, around the sizes where the
// algorithm changes.
func TestSortRow(t *testing.T) {
	for _, dt := range kernels.DTypes {
		rng := rand.New(rand.NewPCG(8, uint64(dt)))
		size := int64(dt.Size())
		for _, n := range []int64{0, 1, 2, 3, insertedRow - 1, insertedRow, insertedRow + 1, 100, 300, 5000} {
			for _, few := range []bool{false, true} { // equal elements, and bytes that all keys share
				values, row := make([]byte, n*size+8), make([]uint64, n)
				for i := range n {
					if row[i] = kernels.Value(rng, dt); few && i > 2 {
						row[i] = row[rng.IntN(3)]
					}
					operands.SetElement(unsafe.Pointer(&values[i*size]), int32(size), row[i])
				}
				for _, descending := range []bool{false, true} {
					order := ir.SortOrder(dt, row, descending)
					work := make([]uint64, SortBytes(n)/8)
					for _, o := range []Sort{{Size: size}, {Size: 4, Positions: true}, {Size: 8, Positions: true}} {
						o.DT, o.Descending = dt, descending
						got := make([]byte, n*o.Size+8)
						o.Row(unsafe.Pointer(&got[0]), unsafe.Pointer(&values[0]), n, unsafe.Pointer(&work[0]))
						for i := range n {
							x := bitsAt(unsafe.Pointer(&got[i*o.Size]), o.Size)
							if o.Positions && x != uint64(order[i]) || !o.Positions && !ir.SameValue(dt, x, row[order[i]]) {
								t.Fatalf("%v, %d elements, descending %v, positions %v: number %d is %#x", dt, n, descending, o.Positions, i, x)
							}
						}
					}
				}
			}
		}
	}
}

// bitsAt returns an element of size bytes.
func bitsAt(p unsafe.Pointer, size int64) uint64 {
	var b [8]byte
	copy(b[:], unsafe.Slice((*byte)(p), size))
	return binary.LittleEndian.Uint64(b[:])
}
