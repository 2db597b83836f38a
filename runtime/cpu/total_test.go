package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// softmaxTotal returns a kernel that divides by the sum of a row and adds up all quotients.
func softmaxTotal(dt ir.DType, op ir.Op) *codegen.Kernel {
	var b ir.Builder
	x := b.Emit(ir.Load, dt, 0)
	q := b.Emit(ir.Div, dt, 0, x, b.Emit(ir.Sum, dt, 0, x))
	return &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt}, {Kind: codegen.Output, DT: dt, Row: true}, {Kind: codegen.Output, DT: dt, Row: true}},
		Stores:   []codegen.Store{{Operand: 1, Value: q}},
		Reduces:  []codegen.Reduce{{Op: op, Value: q, Operand: 2}, {Op: ir.Sum, Value: x, Operand: 3}},
		Body:     b.Code,
	}
}

// TestTotals folds all points of row kernels. Lengths are around those of lanes and blocks, from
// so few that one thread has all points to so many that shares end within blocks.
func TestTotals(t *testing.T) {
	t.Parallel()
	lengths := []int64{1, 3, 64, 65, 1000, 2048, 4095, 4097, 9000}
	if testing.Short() {
		lengths = []int64{3, 65, 2048, 4097}
	}
	ds := everyDevice(t)
	for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Int8, ir.BFloat16} {
		for i, op := range []ir.Op{ir.Sum, ir.Max} {
			k := softmaxTotal(dt, op)
			for _, n := range lengths {
				for _, rows := range []int64{1, 7, 130} {
					how := []kernels.Pattern{kernels.Dense, kernels.Permuted, kernels.Broadcast}[(int64(i)+n+rows)%3]
					h := kernels.NewLaunch(rand.New(rand.NewPCG(uint64(n), uint64(rows))), k, []int64{rows, n}, 1, how)
					onEvery(t, ds, fmt.Sprintf("%v of %v, %d rows of %d, pattern %d", op, dt, rows, n, how), k, h)
				}
			}
		}
	}
}

// TestTotalsRandom is TestRandom with totals.
func TestTotalsRandom(t *testing.T) {
	t.Parallel()
	n := 10
	if thorough {
		n = 100
	}
	ds := everyDevice(t)
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(16, seed))
		k := kernels.Random(rng, 12+rng.IntN(24), rng.IntN(5))
		kernels.Totals(rng, k)
		dims := []int64{1 + rng.Int64N(6), 1 + rng.Int64N(50), 1 + rng.Int64N(40)}
		kept := len(dims)
		if k.HasRows() {
			kept = rng.IntN(3)
			dims[rng.IntN(3)] *= 1 + rng.Int64N(30)
		}
		h := kernels.NewLaunch(rng, k, dims, kept, kernels.Pattern(rng.IntN(int(kernels.NumPatterns))))
		onEvery(t, ds, fmt.Sprintf("seed %d, dims %v, %d kept\n%s", seed, dims, kept, k), k, h)
	}
}

// TestTotalThreads checks totals for several numbers of threads, which each cut the rows at other
// places.
func TestTotalThreads(t *testing.T) {
	k := softmaxTotal(ir.Float32, ir.Sum)
	for _, dims := range [][]int64{{700, 100}, {333, 1000}, {40, 5001}, {3000, 64}} {
		h := kernels.NewLaunch(rand.New(rand.NewPCG(3, uint64(dims[0]))), k, dims, 1, kernels.Dense)
		want := reference(t, k, h)
		for threads := 1; threads <= 9; threads += 2 {
			compare(t, fmt.Sprintf("%v on %d threads", dims, threads), k, onDevice(t, openTest(t, runtime.Config{Tier: -1, Threads: threads}), k, h), want)
		}
	}
}
