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

// TestMachineArgs checks that machine code computes argmax and argmin for every dtype, with ir's
// results: in rows and in columns, over several blocks, with elements in pieces of any size.
func TestMachineArgs(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	for op, row := range map[Op]ir.Op{ArgMax: ir.ArgMax, ArgMin: ir.ArgMin} {
		for _, dt := range []ir.DType{ir.Bool, ir.Uint8, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64, ir.Float32, ir.Float64} {
			t.Run(fmt.Sprint(row, dt), func(t *testing.T) {
				if newMachineArg(dt, op == ArgMin) == nil {
					t.Fatal("there is no code")
				}
				rng := rand.New(rand.NewPCG(uint64(dt), uint64(op)))
				for i := range 60 {
					for _, table := range []*Table{goFolds, machineFolds[ir.KeepDenormals](), machineFolds[ir.FlushDenormals]()} {
						compareArgs(t, rng, &table.folders[op][dt], dt, row, i%3)
					}
				}
			})
		}
	}
}

// compareArgs compares the argmax of some columns. With fewer kinds of values, more values are
// equal.
func compareArgs(t *testing.T, rng *rand.Rand, f *Folder, dt ir.DType, op ir.Op, kinds int) {
	t.Helper()
	n := []int64{1, 1, 3, 9, 70}[rng.IntN(5)]
	m := 1 + rng.Int64N([]int64{100, 1000, 9000 / n}[rng.IntN(3)])
	ld, size := n+rng.Int64N(2)*3*min(n-1, 1), int64(dt.Size())
	values := make([]byte, (m*ld+n)*size)
	some := [3]uint64{kernels.Value(rng, dt), kernels.Value(rng, dt), kernels.Value(rng, dt)}
	rows := make([][]uint64, n)
	for i := range m {
		for j := range n {
			x := kernels.Value(rng, dt)
			if kinds > 0 {
				x = some[rng.IntN(kinds)]
			}
			operands.SetElement(unsafe.Pointer(&values[(i*ld+j)*size]), int32(size), x)
			rows[j] = append(rows[j], x)
		}
	}
	room := 16 * max(n, ir.FoldLanes)
	acc, total, out := make([]uint64, room/8), make([]uint64, room/8), make([]int64, n)
	p, sum := unsafe.Pointer(&acc[0]), unsafe.Pointer(&total[0])
	for r := int64(0); r < m; {
		end := min(r/ir.FoldBlock*ir.FoldBlock+ir.FoldBlock, m)
		piece := min(1+rng.Int64N(3000), end-r)
		f.Add(p, unsafe.Pointer(&values[r*ld*size]), r, piece, n, ld)
		if r += piece; r < end {
			continue
		}
		if f.Finish(p, (r-1)%ir.FoldBlock+1, n); r <= ir.FoldBlock {
			copy(total, acc)
		} else {
			f.Combine(sum, p, n)
		}
	}
	f.Result(unsafe.Pointer(&out[0]), 8, sum, n)
	for j, row := range rows {
		want := 0
		for i, x := range row {
			if ir.SortKey(dt, x, op == ir.ArgMin) > ir.SortKey(dt, row[want], op == ir.ArgMin) {
				want = i
			}
		}
		if out[j] != int64(want) {
			t.Fatalf("column %d of %d, %d elements: %d, want %d", j, n, m, out[j], want)
		}
	}
}
