package gputest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func reduceKernel(op string, dt string) string {
	return "in 0 : " + dt + "\nout 1 : " + dt + " row\n%0 = load 0 : " + dt + "\n%1 = " + op + " %0 : " + dt + "\nstore 1 %1"
}

// testReduce covers both forms of the shader and one to three rounds.
func testReduce(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, c := range []struct {
		kept int
		dims []int64
	}{
		{0, []int64{1}}, {0, []int64{7}}, {0, []int64{64}}, {0, []int64{1000}},
		{0, []int64{rowSteps}}, {0, []int64{rowSteps + 1}}, {0, []int64{3*rowSteps + 5}}, {0, []int64{1 << 20}},
		{1, []int64{3, 1}}, {1, []int64{5, 7}}, {1, []int64{100, 300}}, {1, []int64{3, 70000}},
		{2, []int64{3, 5, 64}}, {1, []int64{4, 30, 50}}, {1, []int64{2, 300, 400}}, {1, []int64{70, 3, 5}},
	} {
		for _, k := range []string{"sum/int32", "sum/uint8", "max/int32", "max/float32", "max/uint8", "sum/float32", "any/bool", "all/bool"} {
			t.Run(fmt.Sprintf("%s/%d of %v", k, c.kept, c.dims), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(len(c.dims)), 9))
				x := newTrial(parse(t, reduceKernel(k[:3], k[4:])), c.kept, c.dims...)
				x.fillInputs(rng)
				if data := x.args[0].Data; k == "all/bool" {
					copy(data, bytes.Repeat([]byte{1}, len(data)))
				} else if k == "any/bool" {
					clear(data[:len(data)-1])
					data[len(data)-1] = 1
				}
				tol := ir.Tolerance{}
				if k == "sum/float32" {
					// Sums of numbers around zero: the error grows with the numbers' size.
					tol.Abs = 2e-6 * float64(points(c.dims[c.kept:]))
				}
				x.check(t, d, tol)
			})
		}
	}
}

// testReduceColumns sums over the outer dim, where neighbouring invocations take neighbouring
// outputs.
func testReduceColumns(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, n := range []int64{2, 100, colSteps, colSteps + 1, 5*colSteps + 3} {
		x := newTrial(parse(t, reduceKernel("sum", "int32")), 1, 70, n)
		x.args[0].Stride[0], x.args[0].Stride[1] = 1, 70
		x.fillInputs(rand.New(rand.NewPCG(1, uint64(n))))
		x.check(t, d, ir.Tolerance{})
	}
}

func testReduceNaN(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, n := range []int64{5, 64, 1000, 40000} {
		x := newTrial(parse(t, reduceKernel("max", "float32")), 1, 2, n)
		x.fillInputs(rand.New(rand.NewPCG(1, 2)))
		binary.LittleEndian.PutUint32(x.args[0].Data[4*(n/2):], math.Float32bits(float32(math.NaN())))
		l := x.launch(t, d)
		must(t, d.Run([]runtime.Launch{*l}))
		got := make([]byte, 8)
		must(t, d.Read(got, ir.Float32, l.Args[1].Buf, 0))
		first := math.Float32frombits(binary.LittleEndian.Uint32(got))
		second := math.Float32frombits(binary.LittleEndian.Uint32(got[4:]))
		if first == first || second != second {
			t.Errorf("n=%d: maxima %v and %v, want NaN for the first row only", n, first, second)
		}
	}
}

// testReduceEmpty: an empty sum is +0.
func testReduceEmpty(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	x := newTrial(parse(t, reduceKernel("sum", "float32")), 1, 3, 0)
	x.args[1].Data = make([]byte, 12)
	x.args[1].Stride = [runtime.MaxRank]int64{1}
	x.check(t, d, ir.Tolerance{})
}

// testReduceRandom runs reductions with additional stores, over random layouts, whole and under
// limits that cut nearly every one.
func testReduceRandom(t *testing.T) {
	for small, limits := range map[bool]func(*gpurun.Info){false: nil, true: tiny} {
		t.Run(fmt.Sprintf("small=%t", small), func(t *testing.T) {
			eachSeed(t, openAs(t, limits), 11, randomReduce)
		})
	}
}

func randomReduce(rng *rand.Rand) *trial {
	dims := make([]int64, 1+rng.IntN(4))
	for i := range dims {
		dims[i] = int64(1 + rng.IntN(8))
	}
	if rng.IntN(2) == 0 {
		dims[len(dims)-1] = int64(4 * (1 + rng.IntN(60)))
	}
	kept := rng.IntN(len(dims))
	k := &codegen.Kernel{}
	b := body{k}
	x := &trial{k: k, dims: dims, kept: kept}
	operand := func(kind codegen.OperandKind, dt ir.DType, access func(*runtime.Access) int64) int {
		var a codegen.HostArg
		n := access(&a.Access)
		a.Data = make([]byte, n*int64(dt.Size()))
		k.Operands = append(k.Operands, codegen.Operand{Kind: kind, DT: dt})
		x.args = append(x.args, a)
		x.shared = append(x.shared, len(x.args)-1)
		return len(x.args) - 1
	}
	anyhow := func(a *runtime.Access) int64 { return randomAccess(rng, a, dims, false) }
	keptOnly := func(a *runtime.Access) int64 { return dense(a, dims[:kept]) }
	somewhere := func(a *runtime.Access) int64 { return randomAccess(rng, a, dims, true) }
	v := b.int32Of(b.emit(ir.Load, ir.Int32, uint64(operand(codegen.Input, ir.Int32, anyhow))))
	for range rng.IntN(3) {
		dt := layoutTypes[rng.IntN(len(layoutTypes))]
		w := b.int32Of(b.emit(ir.Load, dt, uint64(operand(codegen.Input, dt, anyhow))))
		v = b.emit([]ir.Op{ir.Add, ir.Mul, ir.Xor}[rng.IntN(3)], ir.Int32, 0, v, w)
	}
	for i, dt := range []ir.DType{ir.Int32, ir.Uint8} {
		if i > 0 && rng.IntN(2) == 0 {
			break
		}
		op := []ir.Op{ir.Sum, ir.Max}[rng.IntN(2)]
		o := operand(codegen.Output, dt, keptOnly)
		k.Operands[o].Row = true
		k.Stores = append(k.Stores, codegen.Store{Operand: o, Value: b.emit(op, dt, 0, b.from(dt, v))})
	}
	if rng.IntN(2) == 0 {
		k.Stores = append(k.Stores, codegen.Store{Operand: operand(codegen.Output, ir.Int32, somewhere), Value: v})
	}
	x.fillInputs(rng)
	for i, o := range k.Operands {
		if o.Kind == codegen.Output {
			x.fill(rng, i) // unwritten elements must not change
		}
	}
	return x
}

// testPositionNames: names in a shader consist of numbers, and none of them is a WGSL keyword, such
// as f16 and f32 (found by random programs).
func testPositionNames(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, n := range []int{16, 32} {
		src := "in 0 : int32\nout 1 : int32 row\n%0 = load 0 : int32\n"
		for i := 1; i < n; i++ {
			src += fmt.Sprintf("%%%d = mul %%%d %%0 : int32\n", i, i-1)
		}
		src += fmt.Sprintf("%%%d = argmax %%%d : int32\nstore 1 %%%d", n, n-1, n)
		x := newTrial(parse(t, src), 1, 5, 40)
		x.fillInputs(rand.New(rand.NewPCG(uint64(n), 2)))
		x.check(t, d, ir.Tolerance{})
	}
}
