package fold

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// TestScans checks that scans of every dtype, in Go and by machine code, give the bits of ir's: in
// rows and in columns, with elements in pieces of any size, in place or not.
func TestScans(t *testing.T) {
	for op, scan := range map[Op]ir.Op{Sum: ir.CumSum, Prod: ir.CumProd, Max: ir.CumMax, Min: ir.CumMin} {
		for _, dt := range []ir.DType{ir.Uint8, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64, ir.Float32, ir.Float64} {
			for d, tables := range map[ir.Denormals][]*Table{
				ir.KeepDenormals: {goFolds, machineFolds[ir.KeepDenormals]()}, ir.FlushDenormals: {softFolds, machineFolds[ir.FlushDenormals]()},
			} {
				if d == ir.FlushDenormals && (jit.ISA() == nil || !jit.Flushes()) {
					tables = tables[:1]
				}
				t.Run(fmt.Sprint(d, scan, dt), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(uint64(dt), uint64(op)))
					for range 30 {
						compareScans(t, rng, tables, op, scan, dt, d)
					}
				})
			}
		}
	}
}

func compareScans(t *testing.T, rng *rand.Rand, tables []*Table, op Op, scan ir.Op, dt ir.DType, d ir.Denormals) {
	t.Helper()
	n := []int64{1, 1, 3, 8, 9, 70}[rng.IntN(6)]
	m := 1 + rng.Int64N([]int64{100, 700, 9000 / n}[rng.IntN(3)])
	size := int64(dt.Size())
	values := make([]byte, m*n*size)
	want := make([]byte, m*n*size)
	for j := range n {
		column := make([]uint64, m)
		for i := range m {
			column[i] = kernels.Value(rng, dt)
			operands.SetElement(unsafe.Pointer(&values[(i*n+j)*size]), int32(size), column[i])
		}
		s := ir.NewScan(scan, dt)
		for i := range m {
			operands.SetElement(unsafe.Pointer(&want[(i*n+j)*size]), int32(size), s.Next(column[i]))
		}
	}
	for which, table := range tables {
		f := &table.folders[op][dt]
		from := append([]byte(nil), values...)
		out := from
		if rng.IntN(2) == 0 {
			out = make([]byte, len(values))
		}
		run, offset := make([]uint64, n), make([]uint64, n)
		for r := int64(0); r < m; {
			piece := min(1+rng.Int64N(3000), m-r)
			if rng.IntN(2) == 0 {
				piece = min((piece+255)/256*256, m-r)
			}
			f.Scan(unsafe.Pointer(&out[r*n*size]), unsafe.Pointer(&from[r*n*size]), unsafe.Pointer(&run[0]), unsafe.Pointer(&offset[0]), r, piece, n)
			r += piece
		}
		if d == ir.FlushDenormals && which == 0 { // TestFlushRows compares this one with ir's
			want = out
		}
		if err := kernels.Same(dt, out, want); err != nil {
			t.Fatalf("table %d, %d elements of %d columns: %v", which, m, n, err)
		}
	}
}
