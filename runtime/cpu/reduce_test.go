package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
)

// reduction is op over dt of what is loaded and of something computed from it.
func reduction(op ir.Op, dt ir.DType) *codegen.Kernel {
	out := dt
	if op.Info().Position {
		out = ir.Int64
	}
	var b ir.Builder
	x := b.Emit(ir.Load, dt, 0)
	y := x
	if dt != ir.Bool {
		y = b.Emit(ir.Abs, dt, 0, x)
	}
	k := &codegen.Kernel{Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}}}
	for i, v := range []ir.Ref{x, y} {
		row := op.Class() == ir.ClassReduce
		k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: out, Row: row})
		k.Stores = append(k.Stores, codegen.Store{Operand: i + 1, Value: b.Emit(op, out, 0, v)})
	}
	k.Body = b.Code
	return k
}

// TestReduce checks the order of every reduction: short and long rows, columns,
// single results, lengths around lanes and blocks.
func TestReduce(t *testing.T) {
	shapes := []struct {
		dims []int64
		kept int
	}{
		{[]int64{1}, 0}, {[]int64{63}, 0}, {[]int64{4096}, 0}, {[]int64{4097}, 0}, {[]int64{20000}, 0},
		{[]int64{5, 7}, 1}, {[]int64{3, 64}, 1}, {[]int64{2, 1500}, 1}, {[]int64{3, 5000}, 1}, {[]int64{50, 65}, 1},
		{[]int64{2, 130, 70}, 2}, {[]int64{3, 2, 9}, 1}, {[]int64{2, 40, 3, 5}, 2}, {[]int64{0}, 0}, {[]int64{3, 0}, 1},
	}
	for name, c := range tiers {
		t.Run(name, func(t *testing.T) {
			d := openTest(t, c)
			for op := range ir.NumOps {
				for _, dt := range kerneltest.DTypes {
					if !op.Info().RowOp || op == ir.Dot || !op.Info().In.Has(dt) || !thorough && dt != ir.Float32 && dt != ir.Uint8 {
						continue
					}
					k := reduction(op, dt)
					for _, s := range shapes {
						if op.Info().NeedsElement && (s.dims[0] == 0 || s.dims[len(s.dims)-1] == 0) {
							continue // refused when recorded
						}
						for _, columns := range []bool{false, true} {
							rng := rand.New(rand.NewPCG(3, uint64(dt)))
							h := kerneltest.NewLaunch(rng, k, s.dims, s.kept, kerneltest.Dense)
							if columns && s.kept > 0 {
								transpose(h, 0, s.kept)
							}
							compare(t, name, k, onDevice(t, d, k, h), reference(t, k, h))
							if t.Failed() {
								t.Fatalf("%v of %v over %v, %d kept, columns %v", op, dt, s.dims, s.kept, columns)
							}
						}
					}
				}
			}
		})
	}
}

// transpose lays operand i of h out with the last kept dim dense, unless it
// has no part in the reduced dims.
func transpose(h *kerneltest.Launch, i, kept int) {
	n := int64(1)
	a := &h.Args[i].Access
	if a.Stride[len(h.Dims)-1] == 0 && h.Dims[len(h.Dims)-1] > 1 {
		return
	}
	order := append([]int(nil), kept-1)
	for d := len(h.Dims) - 1; d >= 0; d-- {
		if d != kept-1 {
			order = append(order, d)
		}
	}
	for _, d := range order {
		a.Stride[d] = n
		n *= h.Dims[d]
	}
}

// TestRandom runs random kernels on random launches.
func TestRandom(t *testing.T) {
	n := 16
	if thorough {
		n = 120
	}
	ds := everyDevice(t)
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(4, seed))
		k := kerneltest.Random(rng, 12+rng.IntN(24), rng.IntN(5))
		dims := []int64{1 + rng.Int64N(6), 1 + rng.Int64N(50), 1 + rng.Int64N(40)}
		kept := len(dims)
		if k.HasRows() {
			kept = rng.IntN(4)
			dims[rng.IntN(3)] *= 1 + rng.Int64N(30)
		}
		h := kerneltest.NewLaunch(rng, k, dims, kept, kerneltest.Pattern(rng.IntN(int(kerneltest.NumPatterns))))
		onEvery(t, ds, fmt.Sprintf("seed %d, dims %v, %d kept\n%s", seed, dims, kept, k), k, h)
	}
}
