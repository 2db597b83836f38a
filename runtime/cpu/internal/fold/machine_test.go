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

// TestMachineFolds checks that every fold has machine code with the bits of Go's folds, in rows
// and in columns, from any element of a block on.
func TestMachineFolds(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	for _, d := range []ir.Denormals{ir.KeepDenormals, ir.FlushDenormals} {
		if d == ir.FlushDenormals && !jit.Flushes() {
			continue
		}
		plain, machines := newTable(d == ir.FlushDenormals), machineFolds[d]()
		for op, row := range map[Op]ir.Op{Sum: ir.Sum, Prod: ir.Prod, Max: ir.Max, Min: ir.Min} {
			for _, dt := range []ir.DType{ir.Bool, ir.Uint8, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64, ir.Float32, ir.Float64} {
				join := row.Info().Combine
				if dt == ir.Bool {
					if op == Sum || op == Prod {
						continue
					}
					join = map[Op]ir.Op{Max: ir.Or, Min: ir.And}[op]
				}
				t.Run(fmt.Sprint(d, row, dt), func(t *testing.T) {
					f := newMachineFold(join, dt, d)
					if f == nil || f.lanes == nil && dt.Size() >= 4 {
						t.Fatal("there is no code")
					}
					rng := rand.New(rand.NewPCG(uint64(dt), uint64(op)))
					for range 40 {
						compareFolds(t, rng, &plain.folders[op][dt], &machines.folders[op][dt], dt)
						if dt.Size() >= 4 || jit.ISA().JoinsBytes(join) {
							compareRows(t, rng, &plain.folders[op][dt], &machines.folders[op][dt], dt)
							compareColumns(t, rng, &plain.folders[op][dt], &machines.folders[op][dt], dt)
						}
					}
				})
			}
		}
	}
}

// compareFolds adds the same values to both folders and compares the results.
func compareFolds(t *testing.T, rng *rand.Rand, a, b *Folder, dt ir.DType) {
	t.Helper()
	n, m := []int64{1, 9, 70}[rng.IntN(3)], 64+rng.Int64N(400)
	size := int64(dt.Size())
	values := make([]byte, n*m*size)
	for i := range n * m {
		operands.SetElement(unsafe.Pointer(&values[i*size]), int32(size), kernels.Value(rng, dt))
	}
	var sums [2][]byte
	for i, f := range []*Folder{a, b} {
		acc := make([]byte, ir.FoldLanes*n*size)
		if n == 1 {
			f.Start(unsafe.Pointer(&acc[0]))
		}
		for r, rng := int64(0), rand.New(rand.NewPCG(uint64(m), 1)); r < m; {
			some := min(1+rng.Int64N(150), m-r)
			f.Add(unsafe.Pointer(&acc[0]), unsafe.Pointer(&values[r*n*size]), r, some, n, n)
			r += some
		}
		f.Finish(unsafe.Pointer(&acc[0]), m, n)
		sums[i] = acc[:n*size]
	}
	if err := kernels.Same(dt, sums[1], sums[0]); err != nil {
		t.Fatalf("%d elements of %d columns: %v", m, n, err)
	}
}

// compareRows compares a fold of rows in memory by elements with one in a single call.
func compareRows(t *testing.T, rng *rand.Rand, a, b *Folder, dt ir.DType) {
	t.Helper()
	n, m, size := 1+rng.Int64N(6), ir.FoldLanes*(1+rng.Int64N(9)), int64(dt.Size())
	ld := m + rng.Int64N(50)
	values := make([]byte, ld*n*size)
	for i := range ld * n {
		operands.SetElement(unsafe.Pointer(&values[i*size]), int32(size), kernels.Value(rng, dt))
	}
	want, got, acc := make([]byte, 2*n*size), make([]byte, 2*n*size), make([]byte, ir.FoldLanes*size)
	for i := range n {
		a.Start(unsafe.Pointer(&acc[0]))
		a.Add(unsafe.Pointer(&acc[0]), unsafe.Pointer(&values[i*ld*size]), 0, m, 1, 1)
		a.Finish(unsafe.Pointer(&acc[0]), m, 1)
		copy(want[2*i*size:], acc[:size])
	}
	if !b.Rows(unsafe.Pointer(&got[0]), 2*size, unsafe.Pointer(&values[0]), ld*size, m, n) {
		t.Fatal("rows are not folded")
	}
	if err := kernels.Same(dt, got, want); err != nil {
		t.Fatalf("%d rows of %d elements: %v", n, m, err)
	}
}

// compareColumns compares a fold of columns in memory by rows and lanes with one in a single call.
func compareColumns(t *testing.T, rng *rand.Rand, a, b *Folder, dt ir.DType) {
	t.Helper()
	n, m := []int64{64, 67, 270, 1100, 4200}[rng.IntN(5)]/int64(dt.Size()), 1+rng.Int64N([]int64{9, 70, 700}[rng.IntN(3)])
	ld, size := n, int64(dt.Size())
	if rng.IntN(2) == 0 {
		ld += rng.Int64N(50)
	}
	values := make([]byte, ld*m*size)
	for i := range ld * m {
		operands.SetElement(unsafe.Pointer(&values[i*size]), int32(size), kernels.Value(rng, dt))
	}
	from := unsafe.Pointer(&values[0])
	if rng.IntN(4) == 0 { // backwards
		from, ld = unsafe.Pointer(&values[(m-1)*ld*size]), -ld
	}
	room := (min(m, ir.FoldLanes) + SpareLanes) * n * size
	want, acc, out := make([]byte, room), make([]byte, room), make([]byte, n*size)
	a.Add(unsafe.Pointer(&want[0]), from, 0, m, n, ld)
	a.Finish(unsafe.Pointer(&want[0]), m, n)
	if m > ir.FoldLanes && rng.IntN(2) == 0 {
		out = acc[:n*size]
	}
	if !b.Columns(unsafe.Pointer(&out[0]), unsafe.Pointer(&acc[0]), from, m, n, ld) {
		if m > 1 {
			t.Fatalf("%d elements of %d columns are not folded", m, n)
		}
		return
	}
	if err := kernels.Same(dt, out, want[:n*size]); err != nil {
		t.Fatalf("%d elements of %d columns, %d apart: %v", m, n, ld, err)
	}
}
