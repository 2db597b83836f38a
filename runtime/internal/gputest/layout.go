package gputest

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// body appends instructions to a kernel.
type body struct{ k *codegen.Kernel }

func (b body) emit(op ir.Op, dt ir.DType, imm uint64, args ...ir.Ref) ir.Ref {
	in := ir.Instr{Op: op, DT: dt, Imm: imm, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	copy(in.Args[:], args)
	b.k.Body = append(b.k.Body, in)
	return ir.Ref(len(b.k.Body) - 1)
}

// int32Of converts any value to an int32 without rounding.
func (b body) int32Of(v ir.Ref) ir.Ref {
	switch dt := b.k.Body[v].DT; dt {
	case ir.Int32:
		return v
	case ir.Float32, ir.Uint32:
		return b.emit(ir.Bitcast, ir.Int32, 0, v)
	case ir.Float16, ir.BFloat16:
		return b.emit(ir.Convert, ir.Int32, 0, b.emit(ir.Bitcast, ir.Uint16, 0, v))
	default:
		return b.emit(ir.Convert, ir.Int32, 0, v)
	}
}

// from converts an int32 to a value of dt.
func (b body) from(dt ir.DType, v ir.Ref) ir.Ref {
	c := func(bits uint64) ir.Ref { return b.emit(ir.Const, ir.Int32, bits) }
	low := func(bits int) ir.Ref { return b.emit(ir.And, ir.Int32, 0, v, c(1<<bits-1)) }
	switch dt {
	case ir.Uint16:
		return b.emit(ir.Convert, dt, 0, low(16))
	case ir.Float16, ir.BFloat16:
		return b.emit(ir.Bitcast, dt, 0, b.emit(ir.Convert, ir.Uint16, 0, low(16)))
	case ir.Int8, ir.Int16:
		half := c(1 << (dt.Bits() - 1))
		return b.emit(ir.Convert, dt, 0, b.emit(ir.Sub, ir.Int32, 0, low(dt.Bits()), half))
	case ir.Bool:
		return b.emit(ir.Lt, ir.Bool, 0, b.emit(ir.And, ir.Int32, 0, v, c(255)), c(128))
	case ir.Uint8:
		return b.emit(ir.Convert, ir.Uint8, 0, b.emit(ir.And, ir.Int32, 0, v, c(255)))
	case ir.Float32:
		return b.emit(ir.Convert, ir.Float32, 0, b.emit(ir.And, ir.Int32, 0, v, c(0xfffff)))
	}
	return v
}

var layoutTypes = []ir.DType{ir.Int32, ir.Float32, ir.Uint8, ir.Bool, ir.Int8, ir.Int16, ir.Uint16, ir.Float16, ir.BFloat16}

// randomAccess lays an operand out over dims: permuted, strided, flipped, broadcast, offset, or
// through stages. It returns the number of elements that the access needs.
func randomAccess(rng *rand.Rand, a *runtime.Access, dims []int64, output bool) int64 {
	order := rng.Perm(len(dims))
	if rng.IntN(2) == 0 {
		for i := range order {
			order[i] = i
		}
	}
	n := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		if rng.IntN(5) == 0 {
			a.Stride[d] = 0
			continue
		}
		step := int64(1)
		if rng.IntN(5) == 0 {
			step = 2
		}
		a.Stride[d] = n * step
		n *= dims[d] * step
	}
	if !output && rng.IntN(4) == 0 {
		// A position in [0,n) goes through a stage that permutes blocks.
		outer := int64(rng.IntN(4) + 1)
		inner := (n + outer - 1) / outer
		a.Stages = append(a.Stages, runtime.Stage{Offset: int64(rng.IntN(3)), Dims: []int64{outer, inner}, Stride: []int64{1, outer}})
		if rng.IntN(3) == 0 {
			a.Stages = append(a.Stages, runtime.Stage{Dims: []int64{outer*inner + 8}, Stride: []int64{2}})
		}
	} else if rng.IntN(3) == 0 {
		a.Offset = int64(rng.IntN(9))
	}
	for d, n := range dims {
		if len(a.Stages) == 0 && a.Stride[d] != 0 && rng.IntN(6) == 0 {
			a.Offset += a.Stride[d] * (n - 1)
			a.Stride[d] = -a.Stride[d]
		}
	}
	return bound(a, dims) + 1
}

// bound is an upper bound of an access's positions.
func bound(a *runtime.Access, dims []int64) int64 {
	top := func(off int64, dims, stride []int64) int64 {
		for d, n := range dims {
			off += max(stride[d], 0) * (n - 1)
		}
		return off
	}
	hi := top(a.Offset, dims, a.Stride[:])
	for _, s := range a.Stages {
		hi = top(s.Offset, s.Dims, s.Stride)
	}
	return hi
}

// randomTrial is a kernel of integer arithmetic, which is exact everywhere, over random layouts.
func randomTrial(rng *rand.Rand) *trial {
	dims := make([]int64, 1+rng.IntN(4))
	for i := range dims {
		dims[i] = int64(1 + rng.IntN(9))
	}
	if rng.IntN(2) == 0 {
		dims[len(dims)-1] = int64(4 * (1 + rng.IntN(20)))
	}
	return randomTrialOver(rng, dims)
}

func randomTrialOver(rng *rand.Rand, dims []int64) *trial {
	k := &codegen.Kernel{}
	b := body{k}
	x := &trial{k: k, dims: dims, kept: len(dims)}
	operand := func(kind codegen.OperandKind, dt ir.DType) int {
		var a codegen.HostArg
		n := randomAccess(rng, &a.Access, dims, kind == codegen.Output)
		if kind != codegen.Index {
			a.Data = make([]byte, (n+int64(rng.IntN(4)))*int64(dt.Size()))
		}
		k.Operands = append(k.Operands, codegen.Operand{Kind: kind, DT: dt})
		x.args = append(x.args, a)
		x.shared = append(x.shared, len(x.args)-1)
		return len(x.args) - 1
	}
	var vals []ir.Ref
	for range 1 + rng.IntN(3) {
		dt := layoutTypes[rng.IntN(len(layoutTypes))]
		vals = append(vals, b.int32Of(b.emit(ir.Load, dt, uint64(operand(codegen.Input, dt)))))
	}
	if rng.IntN(3) == 0 {
		o := operand(codegen.Index, ir.Invalid)
		if rng.IntN(2) == 0 && len(x.args[o].Stages) == 0 {
			x.args[o].Offset += 1<<32 - 20
		}
		vals = append(vals, b.int32Of(b.emit(ir.IndexLo, ir.Uint32, uint64(o))), b.int32Of(b.emit(ir.IndexHi, ir.Uint32, uint64(o))))
	}
	if rng.IntN(3) == 0 {
		k.Scalars = append(k.Scalars, ir.Int32)
		x.scalars = append(x.scalars, uint64(rng.Uint32()))
		vals = append(vals, b.emit(ir.Scalar, ir.Int32, 0))
	}
	ops := []ir.Op{ir.Add, ir.Sub, ir.Mul, ir.Xor, ir.Maximum, ir.Minimum, ir.Div, ir.Rem, ir.Shr}
	for range 2 + rng.IntN(6) {
		p, q := vals[rng.IntN(len(vals))], vals[rng.IntN(len(vals))]
		vals = append(vals, b.emit(ops[rng.IntN(len(ops))], ir.Int32, 0, p, q))
	}
	for range 1 + rng.IntN(2) {
		dt := layoutTypes[rng.IntN(len(layoutTypes))]
		v := b.from(dt, vals[len(vals)-1-rng.IntN(2)])
		k.Stores = append(k.Stores, codegen.Store{Operand: operand(codegen.Output, dt), Value: v})
	}
	inPlace(rng, x)
	x.fillInputs(rng)
	for i, o := range k.Operands {
		if o.Kind == codegen.Output && x.shared[i] == i {
			x.fill(rng, i) // unwritten elements must not change
		}
	}
	return x
}

// inPlace lets an output overwrite an input of the same size of elements, of any dtype, if each point has its own
// element.
func inPlace(rng *rand.Rand, x *trial) {
	for out, o := range x.k.Operands {
		if o.Kind != codegen.Output || rng.IntN(2) == 0 || out == len(x.k.Operands)-2 {
			continue
		}
		for in := range out {
			a := &x.args[in]
			if x.k.Operands[in].Kind != codegen.Input || x.k.Operands[in].DT.Size() != o.DT.Size() || len(a.Stages) > 0 {
				continue
			}
			own := true
			for d, n := range x.dims {
				own = own && (n == 1 || a.Stride[d] != 0)
			}
			if own {
				x.args[out].Access, x.shared[out] = a.Access, in
				x.args[out].Data = a.Data
				break
			}
		}
	}
}

// seeds is the number of random kernels of a test: each costs the adapter a compile, so CI runs
// few.
func seeds() uint64 {
	if testing.Short() {
		return 10
	}
	if os.Getenv("MILLRACE_LONG") != "" {
		return 400
	}
	return 40
}

// eachSeed checks the random kernels of all seeds, until one fails.
func eachSeed(t *testing.T, d *device, stream uint64, make func(*rand.Rand) *trial) {
	for seed := range seeds() {
		make(rand.New(rand.NewPCG(seed, stream))).check(t, d, ir.Tolerance{})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func testRandomLayouts(t *testing.T) {
	eachSeed(t, openDevice(t, runtime.Config{}), 7, randomTrial)
}

// testRandomSteps runs random kernels over so many points that a software adapter's invocations
// take several, equally many or not, and over rows that end within a vector.
func testRandomSteps(t *testing.T) {
	d := openAs(t, software)
	several, ragged := 0, 0
	for seed := range seeds() / 2 {
		rng := rand.New(rand.NewPCG(seed, 9))
		dims := []int64{int64(3 + rng.IntN(3)), manySteps/3 + int64(rng.IntN(5))}
		if seed%3 > 0 {
			dims[1] = (dims[1] + 3) &^ 3 * 4 // lanes of four
		}
		if seed%2 == 0 {
			dims[0], dims[1] = dims[1], dims[0]
		}
		x := randomTrialOver(rng, dims)
		y := randomTrialOver(rng, []int64{int64(1 + rng.IntN(4)), int64(1 + rng.IntN(4)), int64(16 + rng.IntN(30))})
		for _, x := range []*trial{x, y} {
			text := sources(d, x.check(t, d, ir.Tolerance{}))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			several += strings.Count(text, " w0x = ")
			ragged += strings.Count(text, " inside = ")
		}
	}
	if several == 0 || ragged == 0 {
		t.Errorf("%d shaders take several points, %d rows with ragged ends", several, ragged)
	}
}

// testRandomWindows runs the same kernels under limits so small that nearly every launch is cut.
func testRandomWindows(t *testing.T) {
	eachSeed(t, openAs(t, tiny), 8, randomTrial)
}
