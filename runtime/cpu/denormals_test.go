package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// flushing are the ways to run that must flush denormals in the same way.
var flushing = map[string]runtime.Config{
	"tier0": {Tier: -1, Threads: 2, Denormals: ir.FlushDenormals},
	"tier1": {Tier: 1, Threads: 2, Denormals: ir.FlushDenormals},
	"C":     {Tier: 1, Threads: 2, Denormals: ir.FlushDenormals, Compile: runtime.CompileC},
}

func eachFlushing(t *testing.T, f func(t *testing.T, d *device)) {
	for name, c := range flushing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openTest(t, c)
			if name == "C" && !d.compilesC() {
				t.Skip("no C compiler, or no processor that flushes for it")
			}
			f(t, d)
		})
	}
}

// flushed runs a kernel on small numbers with flushed denormals, and compares the result with the
// oracle.
func flushed(t *testing.T, d *device, what string, k *codegen.Kernel, rng *rand.Rand, dims []int64, kept int, how kernels.Pattern) {
	t.Helper()
	h := kernels.NewLaunch(rng, k, dims, kept, how)
	kernels.FillTiny(rng, k, h)
	compare(t, what, k, onDevice(t, d, k, h), reference(t, k, h))
}

// TestFlushEveryOp is TestEveryOp for small numbers with flushed denormals.
func TestFlushEveryOp(t *testing.T) {
	eachFlushing(t, func(t *testing.T, d *device) {
		for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.BFloat16, ir.Float16} {
			if d.cfg.Tier > 0 && testing.Short() && dt != ir.Float32 {
				continue // a large compile each
			}
			rng := rand.New(rand.NewPCG(11, uint64(dt)))
			for half := range ir.Op(2) {
				k := codegen.Flushed(kernels.EveryOp(dt, func(op ir.Op, out ir.DType) bool {
					return op&1 == half && (d.cfg.Tier <= 0 || !dt.Storage() || kernels.StorageOps(op, out))
				}))
				for range 8 {
					flushed(t, d, dt.String(), k, rng, []int64{7, 301}, 2, kernels.Dense)
				}
			}
		}
	})
}

// TestFlushRandomKernels runs random kernels, including ones with rows.
func TestFlushRandomKernels(t *testing.T) {
	eachFlushing(t, func(t *testing.T, d *device) {
		n := 60
		if testing.Short() {
			n = 15
		}
		if d.cfg.Tier > 0 {
			n /= 3 // each is compiled
		}
		for seed := range n {
			rng := rand.New(rand.NewPCG(12, uint64(seed)))
			k := codegen.Flushed(kernels.Random(rng, 30, seed%3))
			dims, kept := []int64{1 + rng.Int64N(7), 1 + rng.Int64N(70)}, 2
			if k.HasRows() {
				kept = 1
			}
			flushed(t, d, fmt.Sprintf("kernel %d\n%s", seed, k), k, rng, dims, kept, kernels.Pattern(seed)%kernels.NumPatterns)
			if t.Failed() {
				return
			}
		}
	})
}

// TestFlushRows tests row ops, which pass single elements on and read memory directly if they can,
// in rows and in columns. To compile a third of the kernels, compiled ones have two ops, each in
// three ways and with its own operands.
func TestFlushRows(t *testing.T) {
	eachFlushing(t, func(t *testing.T, d *device) {
		dts, together := []ir.DType{ir.Float32, ir.Float64, ir.BFloat16, ir.Float16}, 1
		if d.cfg.Tier > 0 {
			dts, together = dts[:1], 6 // two reductions, scans or sorts
		}
		for _, dt := range dts {
			for parts := range slices.Chunk(rowParts(dt), together) {
				k := codegen.Flushed(rowKernel(t, besides(dt, parts)))
				rng := rand.New(rand.NewPCG(13, uint64(parts[0].op)))
				for _, dims := range [][]int64{{20, 1}, {3, 2}, {3, 130}, {300, 5}, {2, 4500}} {
					for _, how := range []kernels.Pattern{kernels.Dense, kernels.Permuted} {
						h := kernels.NewLaunch(rng, k, dims, 1, how)
						for i := range parts { // the same layout for all: each other layout is a compile
							h.Args[i].Access, h.Args[len(parts)+i].Access = h.Args[0].Access, h.Args[len(parts)].Access
						}
						kernels.FillTiny(rng, k, h)
						compare(t, fmt.Sprintf("%v\n%s", dims, k), k, onDevice(t, d, k, h), reference(t, k, h))
					}
				}
				if t.Failed() {
					return
				}
			}
		}
	})
}

// rowPart is a row op of a loaded value, or of the result of another op on it.
type rowPart struct {
	op     ir.Op
	before string
}

func rowParts(dt ir.DType) (parts []rowPart) {
	for op := ir.OpInvalid + 1; op < ir.NumOps; op++ {
		if info := op.Info(); info.RowOp && info.Arity == 1 && info.In.Has(dt) {
			for _, before := range []string{"", "mul %[1]s %[1]s", "abs %s"} {
				parts = append(parts, rowPart{op, before})
			}
		}
	}
	return parts
}

// besides returns the text of a kernel that does all parts independently, each from memory to
// memory.
func besides(dt ir.DType, parts []rowPart) string {
	var ops, code strings.Builder
	for i := range parts {
		fmt.Fprintf(&ops, "in %d : %v\n", i, dt)
	}
	n := 0
	value := func(to ir.DType, format string, args ...any) string {
		v := fmt.Sprintf("%%%d", n)
		n++
		fmt.Fprintf(&code, "%s = %s : %v\n", v, fmt.Sprintf(format, args...), to)
		return v
	}
	for i, p := range parts {
		out, row := dt, ""
		if p.op.Info().Position {
			out = ir.Int32
		}
		if p.op.Class() == ir.ClassReduce {
			row = " row"
		}
		fmt.Fprintf(&ops, "out %d : %v%s\n", len(parts)+i, out, row)
		v := value(dt, "load %d", i)
		if p.before != "" {
			v = value(dt, p.before, v)
		}
		v = value(out, "%v %s", p.op, v)
		fmt.Fprintf(&code, "store %d %s\n", len(parts)+i, v)
	}
	return ops.String() + code.String()
}

// TestFlushDots tests contractions in every layout, with and without work around them.
func TestFlushDots(t *testing.T) {
	eachFlushing(t, func(t *testing.T, d *device) {
		for name, text := range dotKernels {
			k := rowKernel(t, text)
			if d.cfg.Tier > 0 && name != "around" {
				continue
			}
			k = codegen.Flushed(k)
			for _, c := range dotCases {
				for _, size := range append(dotSizes, map[string]int64{"i": 9, "j": 40, "k": 300, "b": 1, "h": 1, "g": 1, "p": 2, "c": 1, "z": 1}) {
					if d.cfg.Tier > 0 && c.name > "c" {
						continue
					}
					h := dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result)
					kernels.FillTiny(rand.New(rand.NewPCG(14, uint64(len(c.name)))), k, h)
					compare(t, fmt.Sprintf("%s %s, %v", name, c.name, size), k, onDevice(t, d, k, h), reference(t, k, h))
				}
			}
			if t.Failed() {
				return
			}
		}
	})
}

// TestFlushScatters tests scatters, which combine values with those in memory.
func TestFlushScatters(t *testing.T) {
	eachFlushing(t, func(t *testing.T, d *device) {
		if d.cfg.Tier > 0 {
			return // kernels of one load are never compiled
		}
		for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.BFloat16, ir.Float16} {
			for how := ir.CombineSet; how < ir.NumCombines; how++ {
				for _, c := range []scatterCase{
					{kept: []int64{3}, n: 40, v: 9, dt: dt, index: ir.Int32, mode: ir.IndexDrop, how: how},
					{kept: []int64{2, 70}, n: 12, v: 5, same: true, dt: dt, index: ir.Int64, mode: ir.IndexClamp, how: how, apart: 1},
				} {
					k := codegen.Flushed(c.kernel())
					rng := rand.New(rand.NewPCG(15, uint64(how)))
					h := c.launch(rng)
					kernels.FillTiny(rng, k, h)
					compare(t, fmt.Sprintf("%+v", c), k, onDevice(t, d, k, h), reference(t, k, h))
				}
			}
		}
	})
}
