package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
)

// TestMachineFolds: every fold that there is to be has machine code, and it gives the bits
// of Go's, in rows and in columns, from any element of a block on.
func TestMachineFolds(t *testing.T) {
	if machineISA() == nil {
		t.Skip("no machine code here")
	}
	for _, d := range []ir.Denormals{ir.KeepDenormals, ir.FlushDenormals} {
		if d == ir.FlushDenormals && !machineFlushes() {
			continue
		}
		plain, machines := newFolds(d == ir.FlushDenormals), machineFolds[d]()
		for op, row := range map[foldOp]ir.Op{foldSum: ir.Sum, foldProd: ir.Prod, foldMax: ir.Max, foldMin: ir.Min} {
			for _, dt := range []ir.DType{ir.Uint8, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64, ir.Float32, ir.Float64} {
				t.Run(fmt.Sprint(d, row, dt), func(t *testing.T) {
					f := newMachineFold(row.Info().Combine, dt, d)
					if f == nil || f.lanes == nil && dt.Size() >= 4 {
						t.Fatal("there is no code")
					}
					rng := rand.New(rand.NewPCG(uint64(dt), uint64(op)))
					for range 40 {
						compareFolds(t, rng, &plain.fold[op][dt], &machines.fold[op][dt], dt)
					}
				})
			}
		}
	}
}

// compareFolds adds the same values to both, and folds them.
func compareFolds(t *testing.T, rng *rand.Rand, a, b *folder, dt ir.DType) {
	t.Helper()
	n, m := []int64{1, 9, 70}[rng.IntN(3)], 64+rng.Int64N(400)
	size := int64(dt.Size())
	values := make([]byte, n*m*size)
	for i := range n * m {
		storeElement(unsafe.Pointer(&values[i*size]), int32(size), kerneltest.Value(rng, dt))
	}
	var sums [2][]byte
	for i, f := range []*folder{a, b} {
		acc := make([]byte, ir.FoldLanes*n*size)
		if n == 1 {
			f.start(unsafe.Pointer(&acc[0]))
		}
		for r, rng := int64(0), rand.New(rand.NewPCG(uint64(m), 1)); r < m; {
			some := min(1+rng.Int64N(150), m-r)
			f.add(unsafe.Pointer(&acc[0]), unsafe.Pointer(&values[r*n*size]), r, some, n, n)
			r += some
		}
		f.finish(unsafe.Pointer(&acc[0]), m, n)
		sums[i] = acc[:n*size]
	}
	if err := kerneltest.Same(dt, sums[1], sums[0]); err != nil {
		t.Fatalf("%d elements of %d columns: %v", m, n, err)
	}
}
