package gputest

import (
	"encoding/binary"
	"fmt"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// rowShapes are kept and all dims; with across, the rows' points are apart in memory.
var rowShapes = []struct {
	kept   int
	dims   []int64
	across bool
}{
	{0, []int64{300}, false}, {1, []int64{3, 7}, false}, {1, []int64{5, 64}, false}, {1, []int64{5, 1001}, false},
	{2, []int64{2, 3, 260}, false}, {1, []int64{3, 10, 52}, false}, {1, []int64{100, 5}, true}, {1, []int64{130, 200}, true},
	{2, []int64{2, 70, 33}, true},
}

// transpose makes the last kept dim the innermost one of point operands.
func (x *trial) transpose() {
	for i, o := range x.k.Operands {
		if o.Row || o.Kind == codegen.Index {
			continue
		}
		st := &x.args[i].Stride
		last := x.kept - 1
		n := x.dims[last]
		st[last] = 1
		for d := len(x.dims) - 1; d >= x.kept; d-- {
			st[d] = n
			n *= x.dims[d]
		}
		for d := last - 1; d >= 0; d-- {
			st[d] = n
			n *= x.dims[d]
		}
	}
}

// fillPositiveRows fills the inputs; row operands are positive, because they are added below a
// root.
func (x *trial) fillPositiveRows(rng *rand.Rand) {
	x.fillInputs(rng)
	for i, o := range x.k.Operands {
		if o.Kind != codegen.Input || !o.Row {
			continue
		}
		for b := 3; b < len(x.args[i].Data); b += 4 {
			x.args[i].Data[b] &= 0x7f
		}
	}
}

// testRowKernels: several passes over a row in one dispatch, by workgroups and by single
// invocations.
func testRowKernels(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for name, src := range map[string]string{"softmax": rowtext.Softmax, "norm": rowtext.Norm} {
		for _, c := range rowShapes {
			t.Run(fmt.Sprintf("%s/%d of %v", name, c.kept, c.dims), func(t *testing.T) {
				x := newTrial(parse(t, src), c.kept, c.dims...)
				if c.across {
					x.transpose()
				}
				x.fillPositiveRows(rand.New(rand.NewPCG(1, 2)))
				x.allScalars(float32(points(c.dims[c.kept:])))
				l := x.check(t, d, ir.Tolerance{Abs: 1e-5, Rel: 1e-5})
				if n := len(d.Source(l.Prog)); n != 1 {
					t.Errorf("%d shaders", n)
				}
			})
		}
	}
}

// testRowKernelsShared tests rows shared by as many invocations as on a GPU.
func testRowKernelsShared(t *testing.T) {
	d := openAs(t, hardware)
	for _, dims := range [][]int64{{3, 256}, {5, 700}, {2, 5001}, {3, 16000}} {
		x := newTrial(parse(t, rowtext.Softmax), 1, dims...)
		x.fillInputs(rand.New(rand.NewPCG(1, 2)))
		x.check(t, d, ir.Tolerance{Abs: 1e-5, Rel: 1e-5})
	}
}

// testRowKernelsCut runs row kernels under limits below one row, and over long rows.
func testRowKernelsCut(t *testing.T) {
	for name, src := range map[string]string{"softmax": rowtext.Softmax, "norm": rowtext.Norm} {
		for _, c := range []struct {
			small bool
			dims  []int64
		}{{true, []int64{3, 300}}, {true, []int64{70, 40}}, {false, []int64{2, 40000}}, {false, []int64{70, 3000}}} {
			t.Run(fmt.Sprintf("%s/%t %v", name, c.small, c.dims), func(t *testing.T) {
				d := openAs(t, func(i *gpurun.Info) {
					if c.small {
						tiny(i)
					}
				})
				x := newTrial(parse(t, src), 1, c.dims...)
				if c.dims[0] == 70 {
					x.transpose()
				}
				x.fillPositiveRows(rand.New(rand.NewPCG(3, 4)))
				x.allScalars(float32(c.dims[1]))
				x.check(t, d, ir.Tolerance{Abs: 1e-4, Rel: 1e-4})
			})
		}
	}
}

// rowOpKernel computes one row op with ops after it.
func rowOpKernel(op ir.Op, in, out ir.DType, descending bool) string {
	text := fmt.Sprintf("in 0 : %v\nout 1 : %v", in, out)
	if op.Class() == ir.ClassReduce {
		text += " row"
	}
	mode := ""
	if descending {
		mode = "descending "
	}
	return fmt.Sprintf("%s\n%%0 = load 0 : %v\n%%1 = %v %s%%0 : %v\nstore 1 %%1", text, in, op, mode, out)
}

// testRowOps compares every row op of one operand with the oracle: by workgroups, by single
// invocations, and with cut rows.
func testRowOps(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	small := openAs(t, func(i *gpurun.Info) { i.Limits.Binding, i.Points = 16*max(i.Limits.Align, 256), 4096 })
	tight := openAs(t, func(i *gpurun.Info) { i.Limits.Binding, i.Points = 1<<16, 1<<14 })
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		if !info.RowOp || info.Arity != 1 {
			continue
		}
		for _, in := range []ir.DType{ir.Float32, ir.Int32, ir.Uint32, ir.Uint8, ir.Bool} {
			if !info.In.Has(in) {
				continue
			}
			out := in
			if info.Position {
				out = ir.Int32
			}
			for _, c := range []struct {
				d      *device
				dims   []int64
				across bool
			}{
				{d, []int64{3, 1}, false}, {d, []int64{2, 999}, false}, {d, []int64{5, 132}, false}, {d, []int64{66, 40}, true},
				{small, []int64{1, 5000}, false}, {small, []int64{66, 70}, true},
			} {
				if in != ir.Float32 && c.dims[0] == 5 {
					continue
				}
				if c.d == small && op.Class() == ir.ClassSort {
					c.d = tight // a sort needs its whole row in one binding
				}
				t.Run(fmt.Sprintf("%v/%v/%v/%t", op, in, c.dims, c.d != d), func(t *testing.T) {
					x := newTrial(parse(t, rowOpKernel(op, in, out, false)), 1, c.dims...)
					if c.across {
						x.transpose()
					}
					x.fillRow(op, in, c.dims)
					tol := ir.Tolerance{}
					if in == ir.Float32 && info.Tol != tol {
						tol = ir.Tolerance{Abs: 2e-5 * math.Sqrt(float64(c.dims[1])), Rel: 1e-5 * math.Sqrt(float64(c.dims[1]))}
					}
					x.check(t, c.d, tol)
				})
			}
		}
	}
}

// fillRow fills operand 0 with values for a row op: many equal ones, and if order matters some NaN
// and zeros of both signs.
func (x *trial) fillRow(op ir.Op, in ir.DType, dims []int64) {
	rng := rand.New(rand.NewPCG(uint64(op), uint64(in)))
	x.fill(rng, 0)
	data := x.args[0].Data
	if in == ir.Bool { // all true or all false in some rows
		for i := range data {
			data[i] = byte(rng.IntN(2))
			if i < int(dims[1]) {
				data[i] = data[0]
			}
		}
	}
	if in != ir.Float32 {
		return
	}
	special := []float32{0, float32(math.Copysign(0, -1)), 1, 1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for i := 0; i < len(data)/4; i++ {
		f := float32(rng.IntN(9)) / 2
		switch combine := op.Info().Combine; {
		case combine == ir.Mul:
			f = 0.5 + rng.Float32()
		case combine == ir.Add:
			f = float32(rng.NormFloat64())
		case rng.IntN(40) == 0:
			f = special[rng.IntN(len(special))]
		}
		if i < int(dims[1]) && f != f {
			f = -1 // the first row has none
		}
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(f))
	}
}

// testSortDescending sorts rows that take several workgroups, and several rows at once.
func testSortDescending(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, op := range []ir.Op{ir.Sort, ir.ArgSort} {
		for _, dims := range [][]int64{{3, 5}, {2, 5000}, {1, 1024}} {
			out := ir.Float32
			if op == ir.ArgSort {
				out = ir.Int32
			}
			x := newTrial(parse(t, rowOpKernel(op, ir.Float32, out, true)), 1, dims...)
			x.fillRow(op, ir.Float32, dims)
			x.check(t, d, ir.Tolerance{})
		}
	}
}

// testRowMix combines row ops in one kernel: a scan after a reduction, a sort after a scan, ops
// after both.
func testRowMix(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, src := range []string{`
in 0 : int32
in 1 : int32 row
out 2 : int32
out 3 : int32 row
%0 = load 0 : int32
%1 = max %0 : int32
%2 = load 1 : int32
%3 = sub %1 %2 : int32
%4 = xor %0 %3 : int32
%5 = cumsum %4 : int32
%6 = min %5 : int32
%7 = sub %5 %6 : int32
store 2 %7
store 3 %6
`, `
in 0 : int32
out 1 : int32
%0 = load 0 : int32
%1 = cummax %0 : int32
%2 = xor %1 %0 : int32
%3 = sort %2 : int32
%4 = sum %0 : int32
%5 = add %3 %4 : int32
store 1 %5
`} {
		for _, c := range rowShapes {
			x := newTrial(parse(t, src), c.kept, c.dims...)
			if c.across {
				x.transpose()
			}
			x.fillInputs(rand.New(rand.NewPCG(5, 6)))
			x.check(t, d, ir.Tolerance{})
		}
	}
}
