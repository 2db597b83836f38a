package apitest

import (
	"fmt"
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// special values of every dtype; all ops are tested on all of them.
func special(dt ir.DType) ir.Dense {
	var vs []uint64
	switch dt {
	case ir.Float32:
		for _, f := range specialFloats {
			vs = append(vs, uint64(math.Float32bits(float32(f))))
		}
		vs = append(vs, 1, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff) // denormals, smallest normal, extremes
	case ir.Float64:
		for _, f := range specialFloats {
			vs = append(vs, math.Float64bits(f))
		}
		vs = append(vs, 1, 1<<52-1, 1<<52, math.Float64bits(math.MaxFloat64), math.Float64bits(-math.MaxFloat64))
	case ir.Int32:
		for _, i := range []int32{0, 1, -1, 2, -2, 3, 7, -8, 31, 32, 33, 1000, math.MaxInt32, math.MinInt32, math.MinInt32 + 1} {
			vs = append(vs, uint64(uint32(i)))
		}
	case ir.Int64:
		for _, i := range []int64{0, 1, -1, 2, -2, 3, 7, -8, 63, 64, 65, 1 << 40, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1<<53 + 1} {
			vs = append(vs, uint64(i))
		}
	case ir.Float16, ir.BFloat16:
		for _, f := range specialFloats {
			vs = append(vs, ir.FloatBits(dt, f))
		}
		inf := ir.FloatBits(dt, math.Inf(1))
		vs = append(vs, 1, 0x8001, ir.OneBits(dt)+1, inf-1, inf-1|0x8000)
	case ir.Int8, ir.Int16, ir.Uint16, ir.Uint32, ir.Uint64:
		mask := ^uint64(0) >> (64 - dt.Bits())
		for _, i := range []int64{0, 1, -1, 2, -2, 3, 7, -8, 8, 9, 15, 16, 17, 31, 32, 100, 127, -128, 255} {
			vs = append(vs, uint64(i)&mask)
		}
		vs = append(vs, mask>>1, mask>>1+1, mask>>1+2, mask>>2)
	case ir.Uint8:
		vs = []uint64{0, 1, 2, 3, 7, 8, 9, 127, 128, 200, 254, 255}
	case ir.Bool:
		vs = []uint64{0, 1}
	}
	d := ir.NewDense(ir.TensorType{DT: dt, Shape: ir.Shape{len(vs)}})
	for i, v := range vs {
		d.Set(i, v)
	}
	return d
}

var specialFloats = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3, 10, 0.1, -0.7, 1e-3, -1e-10, 1e-30, 88, -88, 104, 1e5, -1e5, 1e10, 1e30,
	math.Pi / 2, math.Pi, -math.Pi, math.E, 16777217, 4294967296, -2147483649, math.NaN(), math.Inf(1), math.Inf(-1),
}

var tensorDTypes = kernels.DTypes

// TestEveryOp compares every elementwise op of the table with the oracle, on every dtype it takes,
// in every form of the API: all pairs of special values, by broadcasting.
func TestEveryOp(t *testing.T) {
	dev := open(t, millrace.Options{})
	seen := 0
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		if info.Class != ir.ClassElementwise {
			continue
		}
		seen++
		for _, dt := range tensorDTypes {
			if info.In.Has(dt) {
				t.Run(op.String()+"/"+dt.String(), func(t *testing.T) { testOp(t, dev, op, dt) })
			}
		}
	}
	if want := 38 + 15 + 6 + 2; seen < want {
		t.Errorf("the table has %d elementwise ops, want at least %d", seen, want)
	}
}

func testOp(t *testing.T, dev *millrace.Device, op ir.Op, dt ir.DType) {
	x := special(dt)
	n := x.Shape[0]
	if rule := op.Info().Out; rule == ir.OutAttr || rule == ir.OutWidth {
		for _, to := range tensorDTypes {
			if rule == ir.OutAttr || to != ir.Bool && to.Bits() == dt.Bits() {
				check(t, dev, one(op, to, nil, x), x)
			}
		}
		return
	}
	col := ir.Dense{TensorType: ir.TensorType{DT: dt, Shape: ir.Shape{n, 1}}, Data: x.Data}
	switch op.Info().Arity {
	case 1:
		check(t, dev, one(op, dt, nil, x), x)
	case 2:
		check(t, dev, one(op, dt, nil, col, x), col, x)
		for i := range n {
			s := []ir.ScalarValue{{DT: dt, Bits: x.At(i)}}
			check(t, dev, scalarNode(op, dt, s, x, false), x)
			check(t, dev, scalarNode(op, dt, s, x, true), x)
		}
	case 3:
		cube := ir.Dense{TensorType: ir.TensorType{DT: dt, Shape: ir.Shape{n, 1, 1}}, Data: x.Data}
		if op == ir.Where {
			mask := special(ir.Bool)
			mask.Shape = ir.Shape{2, 1, 1}
			check(t, dev, one(op, dt, nil, mask, col, x), mask, col, x)
			whereScalars(t, dev, mask, x)
			return
		}
		check(t, dev, one(op, dt, nil, cube, col, x), cube, col, x)
		for i := range n {
			s := []ir.ScalarValue{{DT: dt, Bits: x.At(i)}, {DT: dt, Bits: x.At(n - 1 - i)}}
			p := one(op, dt, s, x)
			p.Nodes[0].NArgs = 3
			p.Nodes[0].Args = [3]ir.Arg{ir.T(0), ir.S(0), ir.S(1)}
			check(t, dev, p, x)
		}
	}
}

func whereScalars(t *testing.T, dev *millrace.Device, mask, x ir.Dense) {
	shape, _ := ir.Broadcast(mask.Shape, x.Shape)
	for i := range x.Shape[0] {
		s := []ir.ScalarValue{{DT: x.DT, Bits: x.At(i)}}
		for _, args := range [][3]ir.Arg{{ir.T(0), ir.T(1), ir.S(0)}, {ir.T(0), ir.S(0), ir.T(1)}} {
			p := &ir.Graph{Inputs: []ir.TensorType{mask.TensorType, x.TensorType}, Scalars: s, Outputs: []int{2},
				Nodes: []ir.Node{{Op: ir.Where, DT: x.DT, Shape: shape, NArgs: 3, Args: args}}}
			check(t, dev, p, mask, x)
		}
	}
}

// one is the program of one op on inputs; dt is Cast's result dtype.
func one(op ir.Op, dt ir.DType, scalars []ir.ScalarValue, in ...ir.Dense) *ir.Graph {
	p := &ir.Graph{Scalars: scalars, Outputs: []int{len(in)}}
	n := ir.Node{Op: op, NArgs: uint8(len(in))}
	operands := make([]ir.Operand, 0, 3)
	for i, d := range in {
		p.Inputs = append(p.Inputs, d.TensorType)
		operands = append(operands, ir.Operand{DT: d.DT, Shape: d.Shape})
		n.Args[i] = ir.T(i)
	}
	for range scalars {
		operands = append(operands, ir.Operand{Scalar: true})
	}
	var err error
	if n.DT, n.Shape, err = ir.Infer(op, nil, dt, nil, operands...); err != nil {
		panic(fmt.Sprint(op, " ", dt, ": ", err))
	}
	p.Nodes = []ir.Node{n}
	return p
}

func scalarNode(op ir.Op, dt ir.DType, s []ir.ScalarValue, x ir.Dense, left bool) *ir.Graph {
	p := one(op, dt, s, x)
	p.Nodes[0].NArgs = 2
	p.Nodes[0].Args = [3]ir.Arg{ir.T(0), ir.S(0)}
	if left {
		p.Nodes[0].Args = [3]ir.Arg{ir.S(0), ir.T(0)}
	}
	return p
}

// check runs a program through the API and compares all its outputs, shapes and dtypes with the
// oracle's.
func check(t *testing.T, p millrace.Place, prog *ir.Graph, inputs ...ir.Dense) {
	t.Helper()
	data := make([][]byte, len(inputs))
	for i := range inputs {
		data[i] = inputs[i].Data
	}
	want, err := ir.EvalTensors(prog, data)
	if err != nil {
		t.Fatalf("oracle: %v\n%v", err, prog)
	}
	tensors := Run(p, prog, data)
	for _, id := range prog.Outputs {
		if err := compare(tensors[id], want[id]); err != nil {
			t.Errorf("tensor %%%d: %v\n%v", id, err, prog)
		}
	}
}

func compare(got *millrace.Tensor, want ir.Dense) error {
	if err := got.Err(); err != nil {
		return err
	}
	if got.DType() != want.DT || !want.Shape.Equal(got.Shape()) {
		return fmt.Errorf("got %v%v, want %v", got.DType(), got.Shape(), want.TensorType)
	}
	data, err := Bytes(got)
	if err != nil {
		return err
	}
	return Differ(want.TensorType, data, want.Data)
}

func open(t testing.TB, o millrace.Options) *millrace.Device {
	t.Helper()
	if o.Device == "" {
		o.Device = "cpu"
	}
	d, err := millrace.OpenOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
