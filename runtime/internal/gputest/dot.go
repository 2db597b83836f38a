package gputest

import (
	"fmt"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func dotKernel(dt string) string {
	return strings.ReplaceAll("in 0 : T\nin 1 : T\nout 2 : T row\n%0 = load 0 : T\n%1 = load 1 : T\n%2 = dot %0 %1 : T\nstore 2 %2", "T", dt)
}

// biasedKernel multiplies by a value computed from an operand, adds a bias along n and a residual,
// and stores a second result.
const biasedKernel = `
in 0 : float32
in 1 : float32
in 2 : float32 row
in 3 : float32 row
out 4 : float32 row
out 5 : bool row
scalar 0 : float32
%0 = load 0 : float32
%1 = load 1 : float32
%2 = scalar 0 : float32
%3 = mul %0 %2 : float32
%4 = abs %1 : float32
%5 = dot %3 %4 : float32
%6 = load 2 : float32
%7 = add %5 %6 : float32
%8 = relu %7 : float32
%9 = load 3 : float32
%10 = sub %8 %9 : float32
%11 = gt %10 %2 : bool
store 4 %10
store 5 %11
`

// matrices lays out a trial of dims (batch, m, n | k): operand 0 over batch, m and k, operand 1
// over batch, k and n, each with k innermost or not.
func (x *trial) matrices(kInnerA, kInnerB, sharedBatch bool) {
	b, m, n, k := x.dims[0], x.dims[1], x.dims[2], x.dims[3]
	x.args[0].Stride = [runtime.MaxRank]int64{m * k, k, 0, 1}
	if !kInnerA {
		x.args[0].Stride = [runtime.MaxRank]int64{m * k, 1, 0, m}
	}
	x.args[1].Stride = [runtime.MaxRank]int64{n * k, 0, 1, n}
	if kInnerB {
		x.args[1].Stride = [runtime.MaxRank]int64{n * k, 0, k, 1}
	}
	if sharedBatch {
		x.args[1].Stride[0] = 0
	}
	size := int64(x.k.Operands[0].DT.Size())
	x.args[0].Data, x.args[1].Data = make([]byte, b*m*k*size), make([]byte, b*n*k*size)
}

// dotTolerance bounds a sum of k products of numbers around 3 in another order.
func dotTolerance(k int64) ir.Tolerance {
	return ir.Tolerance{Abs: 9 * 2e-7 * (1 + float64(k)), Rel: 1e-6}
}

// testDot covers tiles and sums of products, sizes that are no multiples of a tile, every
// transposition, and separate and shared batches, as on GPUs and as on software adapters.
func testDot(t *testing.T) {
	d, gpu := openAs(t, software), openAs(t, hardware)
	for i, dims := range [][]int64{
		{1, 16, 16, 16}, {1, 33, 65, 17}, {3, 40, 20, 1}, {2, 64, 64, 300}, {1, 70, 13, 0}, {1, 1, 50, 70}, {1, 100, 1, 33},
		{5, 3, 4, 6}, {1, 1, 1, 999}, {1, 1, 1, 0}, {2, 130, 40, 5}, {1, 150, 131, 21}, {2, 40, 140, 9},
	} {
		for layout := range 4 {
			t.Run(fmt.Sprintf("%v/%d", dims, layout), func(t *testing.T) {
				x := newTrial(parse(t, dotKernel("float32")), 3, dims...)
				x.matrices(layout&1 == 0, layout&2 == 0, i%2 == 1)
				x.fillInputs(rand.New(rand.NewPCG(uint64(i), 1)))
				x.check(t, d, dotTolerance(dims[3]))
				if min(dims[1], dims[2]) > 32 {
					x.check(t, gpu, dotTolerance(dims[3]))
				}
			})
		}
	}
}

func testDotIntegers(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, dt := range []string{"int32", "uint32", "uint8"} {
		for _, dims := range [][]int64{{2, 20, 36, 50}, {1, 34, 129, 10}, {1, 4, 30, 21}, {1, 16, 16, 9000}} {
			x := newTrial(parse(t, dotKernel(dt)), 3, dims...)
			x.matrices(true, false, false)
			x.fillInputs(rand.New(rand.NewPCG(2, 3)))
			x.check(t, d, ir.Tolerance{})
		}
	}
}

// testDotFused tests ops before and after the contraction, on operands that are broadcast along m
// and n.
func testDotFused(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	small := openAs(t, func(i *gpurun.Info) { i.Limits.Binding, i.Points = 16*max(i.Limits.Align, 256), 1000 })
	for _, c := range []struct {
		d    *device
		dims []int64
	}{{d, []int64{2, 37, 50, 40}}, {d, []int64{2, 133, 50, 11}}, {d, []int64{1, 5, 70, 30}}, {d, []int64{1, 24, 20, 5000}}, {small, []int64{3, 50, 45, 60}}, {small, []int64{1, 20, 13, 2000}}} {
		x := newTrial(parse(t, biasedKernel), 3, c.dims...)
		x.matrices(true, true, true)
		x.args[2].Stride = [runtime.MaxRank]int64{0, 0, 1}
		x.fillInputs(rand.New(rand.NewPCG(4, 5)))
		x.scalars = []uint64{uint64(math.Float32bits(0.5))}
		x.check(t, c.d, dotTolerance(c.dims[3]))
	}
}

// testDotDims contracts over two dims without a common stride, with two dims each along m and n, in
// an unusual order.
func testDotDims(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	x := newTrial(parse(t, dotKernel("int32")), 4, 5, 6, 7, 3, 4, 9)
	// Dims: n, m, n, m | k, k.
	x.args[0].Stride = [runtime.MaxRank]int64{0, 3 * 36, 0, 36, 9, 1}
	x.args[1].Stride = [runtime.MaxRank]int64{7, 0, 1, 0, 35, 4 * 35}
	x.fillInputs(rand.New(rand.NewPCG(6, 7)))
	x.check(t, d, ir.Tolerance{})
}

// testDotApart: a long contraction with few results is divided along k.
func testDotApart(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, dims := range [][]int64{{1, 16, 16, 20000}, {1, 1, 1, 100000}, {1, 2, 40, 30000}} {
		x := newTrial(parse(t, dotKernel("float32")), 3, dims...)
		x.matrices(true, true, false)
		x.fillInputs(rand.New(rand.NewPCG(8, 9)))
		x.check(t, d, dotTolerance(dims[3]))
	}
}
