package gputest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// testRowsRagged: rows that begin and end anywhere within vectors of memory have the results of the
// interpreter, and the elements around them stay as they are. Operands begin at the same places, or
// at others, or all rows share one. Rows have workgroups of their own, and are abreast.
func testRowsRagged(t *testing.T) {
	hard, soft := openAs(t, hardware), openAs(t, software)
	kernels := abreastKernels("float32")
	for name, text := range abreastKernels("uint8") {
		kernels[name+" of uint8"] = text
	}
	kernels["mix"] = eachKernels["mix"]
	kernels["weighed"] = `in 0 : float32
in 1 : uint8
in 2 : float32
out 3 : float32
out 4 : int32 row
%0 = load 0 : float32
%1 = load 1 : uint8
%2 = convert %1 : float32
%3 = mul %0 %2 : float32
%4 = max %3 : float32
%5 = sub %3 %4 : float32
%6 = load 2 : float32
%7 = mul %5 %6 : float32
%8 = argmin %7 : int32
store 3 %7
store 4 %8
`
	for name, text := range kernels {
		t.Run(name, func(t *testing.T) {
			ragged := 0
			for i, n := range []int64{17, 33, 64, 1023} {
				for j, rows := range []int64{5, 300} {
					d := hard
					if (i+j)%2 > 0 {
						d = soft
					}
					for more := range int64(4) {
						rng := rand.New(rand.NewPCG(uint64(n*rows), uint64(more)))
						x := newTrial(parse(t, text), 1, rows, n)
						for o := range x.args {
							if !x.k.Operands[o].Row {
								x.spread(o, more+4*int64(o%2)) // the same within a vector
							}
						}
						switch {
						case strings.HasPrefix(name, "softmax") && more == 1:
							x.shared[1], x.args[1].Access = 0, x.args[0].Access
						case name == "norm" || name == "scaled" || name == "weighed":
							x.args[2].Stride[0] = 0
						}
						if name == "weighed" && more == 3 { // it begins elsewhere
							x.args[1].Offset++
							x.args[1].Data = append(x.args[1].Data, 0)
						}
						x.fillPositiveRows(rng)
						x.allScalars(float32(n))
						for o := range x.args {
							if x.k.Operands[o].DT == ir.Uint8 || strings.HasSuffix(name, "prod") {
								x.tame(o)
							}
						}
						l := x.check(t, d, ir.Tolerance{Rel: 1e-4, Abs: 4e-6 * float64(n)})
						if strings.Contains(sources(d, l), " head = ") {
							ragged++
						}
					}
				}
			}
			if ragged == 0 {
				t.Error("no rows are loaded by such vectors")
			}
		})
	}
	// Padded rows, the first of which begins before its memory.
	for _, d := range []*device{hard, soft} {
		for _, n := range []int64{37, 64, 1001} {
			const rows, before, around = 300, 4, 6
			text := strings.ReplaceAll(padKernel, "store 2 %9", "%10 = max %9 : int32\n%11 = sub %9 %10 : int32\nstore 2 %11")
			x := newTrial(parse(t, text), 1, rows, n)
			x.args[0].Data = make([]byte, 4*rows*(n-around))
			x.args[0].Offset, x.args[0].Stride[0] = -before, n-around
			x.args[1].Stride[0] = 0
			x.scalars = []uint64{uint64(n - around)}
			x.fillInputs(rand.New(rand.NewPCG(uint64(n), 9)))
			x.check(t, d, ir.Tolerance{})
		}
	}
	// Zeros of both signs, infinities and NaN.
	for _, d := range []*device{hard, soft} {
		for name, text := range rowsByOne("float32") {
			x := newTrial(parse(t, text), 1, 3, 301)
			rng := rand.New(rand.NewPCG(7, 8))
			x.fillInputs(rng)
			x.odd(rng, strings.HasSuffix(name, "prod"))
			x.check(t, d, ir.Tolerance{Rel: 1e-4, Abs: 1e-3})
		}
	}
}

// tame makes the values of an operand such that sums and products of them stay small.
func (x *trial) tame(operand int) {
	data := x.args[operand].Data
	switch x.k.Operands[operand].DT {
	case ir.Uint8:
		for i := range data {
			data[i] &= 3
		}
	case ir.Float32:
		for i := 0; i < len(data); i += 4 { // near 1
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(1+1e-4*math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))))
		}
	}
}
