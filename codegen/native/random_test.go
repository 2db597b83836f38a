package native_test

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// drawing is a kernel of one result, random numbers whose seed is a scalar.
func drawing(t *testing.T, op ir.Op, dt ir.DType) *codegen.Kernel {
	t.Helper()
	none := [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
	draw := ir.Instr{Op: op, DT: dt, Args: none}
	draw.Args[0], draw.Args[1], draw.Args[2] = 0, 1, 2
	k, err := codegen.Lower(&codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Index}, {Kind: codegen.Output, DT: dt}},
		Scalars:  []ir.DType{ir.Uint64},
		Body: []ir.Instr{
			{Op: ir.IndexLo, DT: ir.Uint32, Args: none}, {Op: ir.IndexHi, DT: ir.Uint32, Args: none},
			{Op: ir.Scalar, DT: ir.Uint64, Args: none}, draw,
		},
		Stores: []codegen.Store{{Operand: 1, Value: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestRandomNumbers compares random numbers at positions about 2^32, where the high half differs
// within a vector, with the interpreter's. The halves of the seed, of 64 bits, do not halve the lanes.
func TestRandomNumbers(t *testing.T) {
	was := indexOffset
	defer func() { indexOffset = was }()
	for _, isa := range runnable() {
		for _, op := range []ir.Op{ir.Uniform, ir.Normal} {
			for _, dt := range []ir.DType{ir.Float32, ir.Float64} {
				k := drawing(t, op, dt)
				for _, c := range []codegen.AccessClass{codegen.Contiguous, codegen.Splat, codegen.Strided} {
					rng := rand.New(rand.NewPCG(1, 1))
					for range 30 {
						indexOffset = func(rng *rand.Rand) int64 { return (1+rng.Int64N(3))<<32 - rng.Int64N(70) }
						if err := check(t, rng, k, all(k, c), isa, 1+rng.IntN(3), 1+rng.IntN(90)); err != nil {
							t.Errorf("%s, %v of %v, %v: %v", isa.Name, op, dt, c, err)
						}
					}
				}
				f, err := native.Compile(k, all(k, codegen.Contiguous), isa, false)
				if err != nil {
					t.Fatal(err)
				}
				if want := isa.Bytes / dt.Size(); f.Lanes != want {
					t.Errorf("%s, %v of %v: %d lanes, not %d", isa.Name, op, dt, f.Lanes, want)
				}
			}
		}
	}
}
