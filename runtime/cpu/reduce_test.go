package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// reduction returns a kernel that applies op to a loaded value of dt and to a value computed from
// it.
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

// TestReduce checks the order of every reduction: short and long rows, columns, single results,
// lengths around those of lanes and blocks.
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
			t.Parallel()
			d := openTest(t, c)
			for op := range ir.NumOps {
				for _, dt := range kernels.DTypes {
					if !op.Info().RowOp || op.Info().Arity != 1 || !op.Info().In.Has(dt) || !thorough && dt != ir.Float32 && dt != ir.Uint8 {
						continue
					}
					if c.Tier > 0 && testing.Short() && !sampled(op, dt) {
						continue // a compile each
					}
					k, shapes := reduction(op, dt), shapes
					once := c.Tier > 0 && !thorough && !sampled(op, dt)
					if once {
						shapes = shapes[9:10]
					}
					for _, s := range shapes {
						if op.Info().NeedsElement && (s.dims[0] == 0 || s.dims[len(s.dims)-1] == 0) {
							continue // recording refuses these
						}
						if testing.Short() && product(s.dims) > 5000 {
							continue
						}
						for _, columns := range []bool{false, true} {
							if columns && (s.kept == 0 || once) {
								continue
							}
							rng := rand.New(rand.NewPCG(3, uint64(dt)))
							h := kernels.NewLaunch(rng, k, s.dims, s.kept, kernels.Dense)
							if columns {
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

// sampled returns true for the reductions that are compiled in every shape; the others are
// compiled in one. Folds, scans and sorts are compiled once for all kernels, and the printed code
// that passes them elements is the same for all ops of a class.
func sampled(op ir.Op, dt ir.DType) bool {
	switch op {
	case ir.Sum, ir.ArgMax, ir.CumMax, ir.Sort, ir.ArgSort:
		return dt == ir.Float32
	}
	return op == ir.Max && dt == ir.Uint8
}

// folds reports an op that combines the elements of dt themselves.
func folds(op ir.Op, dt ir.DType) bool {
	return op.Class() == ir.ClassReduce && op != ir.Dot && !op.Info().Position && op.Info().In.Has(dt)
}

// folding returns a kernel that only applies op to a loaded value.
func folding(op ir.Op, dt ir.DType) *codegen.Kernel {
	var b ir.Builder
	x := b.Emit(ir.Load, dt, 0)
	return &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt, Row: true}},
		Stores:   []codegen.Store{{Operand: 1, Value: b.Emit(op, dt, 0, x)}},
		Body:     b.Code,
	}
}

// TestShortColumns folds columns directly from memory, with lengths around the number of lanes and
// above, and with more columns than are folded together.
func TestShortColumns(t *testing.T) {
	ds := []*device{openTest(t, runtime.Config{Tier: -1, Threads: 2})}
	if jit.ISA() != nil {
		ds = append(ds, openTest(t, runtime.Config{Tier: 1, Compile: runtime.CompileNative, Threads: 2}))
	}
	lengths := []int64{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 200, 321}
	if testing.Short() {
		lengths = []int64{1, 7, 32, 33, 64, 65, 321}
	}
	for op := range ir.NumOps {
		for _, dt := range kernels.DTypes {
			if !folds(op, dt) {
				continue
			}
			k := folding(op, dt)
			for _, n := range lengths {
				for _, dims := range [][]int64{{50, n}, {2, 16, n}, {4100, n}} {
					if dims[0] > 50 && n != 9 && n != 32 {
						continue
					}
					h := kernels.NewLaunch(rand.New(rand.NewPCG(5, uint64(n))), k, dims, len(dims)-1, kernels.Dense)
					transpose(h, 0, len(dims)-1)
					want := reference(t, k, h)
					for i, d := range ds {
						compare(t, "columns", k, onDevice(t, d, k, h), want)
						if t.Failed() {
							t.Fatalf("%v of %v over %v, device %d", op, dt, dims, i)
						}
					}
				}
			}
		}
	}
}

// transpose changes operand i of h so that the last kept dim is dense, unless the operand does not
// move along the reduced dims.
func transpose(h *kernels.Launch, i, kept int) {
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
	t.Parallel()
	ds := everyDevice(t)
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(4, seed))
		k := kernels.Random(rng, 12+rng.IntN(24), rng.IntN(5))
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
