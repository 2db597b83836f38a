package apitest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// Run records a program through the public API: inputs are the oracle's bytes. It returns the
// tensors by id. A tensor named by a Release entry is released at the entry's position.
func Run(p millrace.Place, prog *ir.Graph, inputs [][]byte) []*millrace.Tensor {
	r := NewRunner(p, prog, inputs)
	for i := range prog.Nodes {
		r.Step(i)
	}
	return r.Tensors
}

// Runner records a program one node at a time, for tests that act between nodes.
type Runner struct {
	Tensors []*millrace.Tensor
	place   millrace.Place
	prog    *ir.Graph
}

// NewRunner makes the inputs.
func NewRunner(p millrace.Place, prog *ir.Graph, inputs [][]byte) *Runner {
	r := &Runner{place: p, prog: prog}
	for i, data := range inputs {
		r.Tensors = append(r.Tensors, FromBytes(p, prog.Inputs[i], data))
	}
	return r
}

// Step records node i.
func (r *Runner) Step(i int) {
	n := &r.prog.Nodes[i]
	switch n.Op {
	case ir.Release:
		r.Tensors[n.Args[0].ID].Release()
		return
	case ir.Keep:
		return // only scopes keep: see the hammer test
	}
	r.Tensors = append(r.Tensors, r.node(n))
}

func (r *Runner) node(n *ir.Node) *tensor {
	switch n.Op.Class() {
	case ir.ClassCreate:
		return r.create(n)
	case ir.ClassElementwise:
		return r.elementwise(n)
	case ir.ClassView:
		return view(n, r.Tensors[n.Args[0].ID])
	}
	if f, ok := rowForms[n.Op.Class()]; ok {
		return f(r, n)
	}
	panic("apitest: " + n.Op.String() + " makes no tensor")
}

// operand is a tensor, or a number if t is nil. A number that float64 cannot hold (some int64) is a
// 0-d tensor.
type operand struct {
	t *tensor
	s float64
}

func (r *Runner) operand(a ir.Arg) operand {
	if !a.Scalar {
		return operand{t: r.Tensors[a.ID]}
	}
	v := r.prog.Scalars[a.ID]
	if s, ok := Number(v); ok {
		return operand{s: s}
	}
	return operand{t: r.scalar(v)}
}

func (r *Runner) scalar(v ir.ScalarValue) *tensor {
	d := ir.NewDense(ir.TensorType{DT: v.DT, Shape: ir.Shape{}})
	d.Set(0, v.Bits)
	return FromBytes(r.place, d.TensorType, d.Data)
}

// asTensor converts a number to a 0-d tensor of the scalar's dtype.
func (r *Runner) asTensor(a ir.Arg, o operand) *tensor {
	if o.t != nil {
		return o.t
	}
	return r.scalar(r.prog.Scalars[a.ID])
}

// Number is a scalar as the float64 that Scalar forms take, if possible.
func Number(v ir.ScalarValue) (float64, bool) {
	switch dt := v.DT; {
	case dt.IsFloat():
		return ir.BitsFloat(dt, v.Bits), true
	case dt.IsSigned():
		n := int64(v.Bits<<(64-dt.Bits())) >> (64 - dt.Bits())
		f := float64(n)
		return f, f < math.MaxInt64 && int64(f) == n
	}
	f := float64(v.Bits)
	return f, f < math.MaxUint64 && uint64(f) == v.Bits
}

func (r *Runner) elementwise(n *ir.Node) *tensor {
	var o [3]operand
	for i, a := range n.Args[:n.NArgs] {
		o[i] = r.operand(a)
	}
	switch n.Op {
	case ir.Cast:
		return o[0].t.Cast(n.DT)
	case ir.Reinterpret:
		return o[0].t.Bitcast(n.DT)
	case ir.Philox:
		return r.asTensor(n.Args[0], o[0]).Philox(r.asTensor(n.Args[1], o[1]), r.asTensor(n.Args[2], o[2]))
	case ir.Where:
		mask := r.asTensor(n.Args[0], o[0])
		switch {
		case o[1].t != nil && o[2].t != nil:
			return millrace.Where(mask, o[1].t, o[2].t)
		case o[1].t != nil:
			return millrace.WhereScalar(mask, o[1].t, o[2].s)
		case o[2].t != nil:
			return millrace.ScalarWhere(mask, o[1].s, o[2].t)
		}
		return millrace.WhereScalar(mask, r.asTensor(n.Args[1], o[1]), o[2].s)
	case ir.Clamp:
		if o[0].t != nil && o[1].t == nil && o[2].t == nil {
			return o[0].t.ClampScalar(o[1].s, o[2].s)
		}
		return r.asTensor(n.Args[0], o[0]).Clamp(r.asTensor(n.Args[1], o[1]), r.asTensor(n.Args[2], o[2]))
	}
	if f := forms[n.Op].Unary; f != nil {
		return f(o[0].t)
	}
	f := forms[n.Op].Binary
	var res *tensor
	switch {
	case o[0].t != nil && o[1].t == nil && f.Right != nil:
		res = f.Right(o[0].t, o[1].s)
	case o[0].t == nil && f.Left != nil:
		res = f.Left(o[1].t, o[0].s)
	}
	if res != nil {
		return res
	}
	return f.Tensors(r.asTensor(n.Args[0], o[0]), r.asTensor(n.Args[1], o[1]))
}

func (r *Runner) create(n *ir.Node) *tensor {
	v := r.prog.Scalars[n.Args[0].ID]
	switch n.Op {
	case ir.Uniform:
		return millrace.UniformOn(r.place, n.DT, v.Bits, n.Shape...)
	case ir.Normal:
		return millrace.NormalOn(r.place, n.DT, v.Bits, n.Shape...)
	case ir.Full:
		if s, ok := Number(v); ok {
			return millrace.FullOn(r.place, n.DT, s, n.Shape...)
		}
		return r.scalar(v).Expand(n.Shape...)
	}
	// Arange takes the end, not the count; half a step of slack fixes the count. Arguments that it
	// rejects (wrapping integers, a step of 0) come from the oracle as data.
	count := n.Shape.Elems()
	start, ok1 := Number(v)
	step, ok2 := Number(r.prog.Scalars[n.Args[1].ID])
	if ok1 && ok2 && step != 0 && count > 0 {
		t := millrace.ArangeOn(r.place, n.DT, start, start+float64(step*(float64(count)-0.5)), step)
		if t.Err() == nil && t.Len() == count {
			return t.Reshape(n.Shape...)
		}
	}
	one := &ir.Graph{Scalars: r.prog.Scalars, Nodes: []ir.Node{*n}, Outputs: []int{0}}
	data, err := ir.EvalGraph(one, nil)
	if err != nil {
		panic(err)
	}
	return FromBytes(r.place, ir.TensorType{DT: n.DT, Shape: n.Shape}, data[0])
}

func view(n *ir.Node, t *tensor) *tensor {
	switch n.Op {
	case ir.Reshape:
		return t.Reshape(n.Shape...)
	case ir.Permute:
		return t.Permute(n.Attr.Axes...)
	case ir.Expand:
		return t.Expand(n.Shape...)
	case ir.Window:
		return window(n, t)
	}
	return t.Slice(ranges(n.Shape, n.Attr)...)
}

// FromBytes makes a tensor of the oracle's bytes.
func FromBytes(p millrace.Place, tt ir.TensorType, data []byte) *tensor {
	n, shape := tt.Shape.Elems(), []int(tt.Shape)
	if shape == nil {
		shape = []int{}
	}
	switch tt.DT {
	case ir.Float32:
		return millrace.FromSliceOn(p, decode[float32](data, n), shape...)
	case ir.Float64:
		return millrace.FromSliceOn(p, decode[float64](data, n), shape...)
	case ir.Int32:
		return millrace.FromSliceOn(p, decode[int32](data, n), shape...)
	case ir.Int64:
		return millrace.FromSliceOn(p, decode[int64](data, n), shape...)
	case ir.Uint8:
		return millrace.FromSliceOn(p, decode[uint8](data, n), shape...)
	case ir.Uint16:
		return millrace.FromSliceOn(p, decode[uint16](data, n), shape...)
	case ir.Uint32:
		return millrace.FromSliceOn(p, decode[uint32](data, n), shape...)
	case ir.Uint64:
		return millrace.FromSliceOn(p, decode[uint64](data, n), shape...)
	case ir.Int8:
		return millrace.FromSliceOn(p, decode[int8](data, n), shape...)
	case ir.Int16:
		return millrace.FromSliceOn(p, decode[int16](data, n), shape...)
	case ir.Float16:
		return millrace.FromSliceOn(p, decode[millrace.F16](data, n), shape...)
	case ir.BFloat16:
		return millrace.FromSliceOn(p, decode[millrace.BF16](data, n), shape...)
	}
	return millrace.FromSliceOn(p, decode[bool](data, n), shape...)
}

// Bytes reads a tensor as the oracle's bytes.
func Bytes(t *tensor) ([]byte, error) {
	switch t.DType() {
	case millrace.Float32:
		return encode(millrace.Values[float32](t))
	case millrace.Float64:
		return encode(millrace.Values[float64](t))
	case millrace.Int32:
		return encode(millrace.Values[int32](t))
	case millrace.Int64:
		return encode(millrace.Values[int64](t))
	case millrace.Uint8:
		return encode(millrace.Values[uint8](t))
	case millrace.Uint16:
		return encode(millrace.Values[uint16](t))
	case millrace.Uint32:
		return encode(millrace.Values[uint32](t))
	case millrace.Uint64:
		return encode(millrace.Values[uint64](t))
	case millrace.Int8:
		return encode(millrace.Values[int8](t))
	case millrace.Int16:
		return encode(millrace.Values[int16](t))
	case millrace.Float16:
		return encode(millrace.Values[millrace.F16](t))
	case millrace.BFloat16:
		return encode(millrace.Values[millrace.BF16](t))
	}
	return encode(millrace.Values[bool](t))
}

func decode[T millrace.Element](data []byte, n int) []T {
	vs := make([]T, n)
	if _, err := binary.Decode(data, binary.LittleEndian, vs); err != nil && n > 0 {
		panic(err)
	}
	return vs
}

func encode[T millrace.Element](vs []T, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return binary.Append(nil, binary.LittleEndian, vs)
}

// Differ reports where two tensors' bytes differ; any NaN equals any NaN.
func Differ(tt ir.TensorType, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes, want %d", len(got), len(want))
	}
	g, w := ir.Dense{TensorType: tt, Data: got}, ir.Dense{TensorType: tt, Data: want}
	for i := range tt.Shape.Elems() {
		if a, b := g.At(i), w.At(i); !ir.SameValue(tt.DT, a, b) {
			return fmt.Errorf("element %d of %v: got %s, want %s (%#x, %#x)", i, tt, ir.FormatBits(tt.DT, a), ir.FormatBits(tt.DT, b), a, b)
		}
	}
	return nil
}
