package ir

import (
	"fmt"
)

// EvalGraph computes a graph op by op on dense row-major buffers of little-endian elements (a bool
// is one byte, 0 or 1). It defines the meaning of every op: each class of ops is one simple loop,
// and every number is computed by [EvalOps] or [EvalRow]. It returns one buffer per output. The
// graph must verify; inputs must have the sizes their types say. An index out of range is an
// [IndexFault].
func EvalGraph(p *Graph, inputs [][]byte) ([][]byte, error) {
	return KeepDenormals.EvalGraph(p, inputs)
}

// EvalGraph is the function EvalGraph with denormals treated as d says.
func (d Denormals) EvalGraph(p *Graph, inputs [][]byte) ([][]byte, error) {
	tensors, err := d.EvalTensors(p, inputs)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(p.Outputs))
	for i, id := range p.Outputs {
		out[i] = tensors[id].Data
	}
	return out, nil
}

// Dense is a tensor of the oracle.
type Dense struct {
	TensorType
	Data []byte
}

// EvalTensors is EvalGraph for every tensor of the graph, by id.
func EvalTensors(p *Graph, inputs [][]byte) ([]Dense, error) {
	return KeepDenormals.EvalTensors(p, inputs)
}

// EvalTensors is the function EvalTensors with denormals treated as d says.
func (d Denormals) EvalTensors(p *Graph, inputs [][]byte) ([]Dense, error) {
	if err := p.Verify(); err != nil {
		return nil, err
	}
	if len(inputs) != len(p.Inputs) {
		return nil, fmt.Errorf("%d inputs, want %d", len(inputs), len(p.Inputs))
	}
	var tensors []Dense
	for i, t := range p.Inputs {
		if want := t.Shape.Elems() * t.DT.Size(); len(inputs[i]) != want {
			return nil, fmt.Errorf("input %d has %d bytes, want %d", i, len(inputs[i]), want)
		}
		tensors = append(tensors, Dense{t, inputs[i]})
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !n.HasResult() {
			continue
		}
		args := make([]operandValue, n.NArgs)
		for j, a := range n.Args[:n.NArgs] {
			if a.Scalar {
				args[j].scalar = p.Scalars[a.ID]
			} else {
				args[j].tensor = &tensors[a.ID]
			}
		}
		t, err := d.evalNode(n, args)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", i, err)
		}
		tensors = append(tensors, t)
	}
	return tensors, nil
}

// operandValue is a tensor or, if tensor is nil, a scalar.
type operandValue struct {
	tensor *Dense
	scalar ScalarValue
}

func (v *operandValue) dtype() DType {
	if v.tensor != nil {
		return v.tensor.DT
	}
	return v.scalar.DT
}

func (d Denormals) evalNode(n *Node, args []operandValue) (Dense, error) {
	out := NewDense(TensorType{n.DT, n.Shape})
	var err error
	switch n.Op.Class() {
	case ClassCreate:
		d.evalCreate(n, args, out)
	case ClassElementwise:
		d.evalScalar(n, args, nil, out)
	case ClassView:
		evalView(n, args[0].tensor, out)
	case ClassReduce:
		d.evalReduce(n, args, out)
	case ClassScan, ClassSort:
		d.evalAlong(n, args[0].tensor, out)
	case ClassMove:
		evalMove(n, args, out)
	case ClassGather:
		err = evalGather(n, args[0].tensor, args[1].tensor, out)
	case ClassScatter:
		err = d.evalScatter(n, args[0].tensor, args[1].tensor, args[2].tensor, out)
	}
	return out, err
}

func (d Denormals) evalCreate(n *Node, args []operandValue, out Dense) {
	var rows [][]uint64
	if n.Op.Info().Indexed {
		low, high := make([]uint64, out.Shape.Elems()), make([]uint64, out.Shape.Elems())
		for i := range low {
			low[i], high[i] = uint64(uint32(i)), uint64(i)>>32
		}
		rows = append(rows, low, high)
	}
	d.evalScalar(n, args, rows, out)
}

// evalScalar evaluates an op on every element. rows are the bits of the position, which precedes
// the operands of indexed ops.
func (d Denormals) evalScalar(n *Node, args []operandValue, rows [][]uint64, out Dense) {
	dts := make([]DType, len(args))
	for i := range args {
		dts[i] = args[i].dtype()
		row := args[i].elements(n.Shape)
		if d.Computes(n.Op) {
			d.flushRow(dts[i], row)
		}
		rows = append(rows, row)
	}
	results := make([]uint64, out.Shape.Elems())
	d.EvalOps(n.Op, n.DT, dts, rows, results)
	if d.Computes(n.Op) {
		d.flushRow(n.DT, results)
	}
	for i, bits := range results {
		out.Set(i, bits)
	}
}

// elements are the bits for every element of a result of shape to, in row-major order.
func (v *operandValue) elements(to Shape) []uint64 {
	row := make([]uint64, to.Elems())
	if v.tensor == nil {
		for i := range row {
			row[i] = v.scalar.Bits
		}
		return row
	}
	strides, point := broadcastStrides(v.tensor.Shape, to), make([]int, len(to))
	for i := range row {
		unravel(i, to, point)
		row[i] = v.tensor.At(dot(point, strides))
	}
	return row
}

// evalView copies elements: no number is computed.
func evalView(n *Node, x *Dense, out Dense) {
	point := make([]int, len(n.Shape))
	from := make([]int, len(x.Shape))
	strides := x.Shape.RowMajor()
	for i := range out.Shape.Elems() {
		unravel(i, n.Shape, point)
		switch n.Op {
		case Reshape:
			unravel(i, x.Shape, from)
		case Permute:
			for d, a := range n.Attr.Axes {
				from[a] = point[d]
			}
		case Slice:
			for d := range from {
				from[d] = n.Attr.Start[d] + n.Attr.Step[d]*point[d]
			}
		case Expand:
			for d := range from {
				from[d] = point[len(point)-len(from)+d]
				if x.Shape[d] == 1 {
					from[d] = 0
				}
			}
		case Window:
			a := n.Attr.Axes[0]
			copy(from, point[:a])
			from[a] = point[a]*n.Attr.Step[0] + point[a+1]*n.Attr.Step[1]
			copy(from[a+1:], point[a+2:])
		}
		out.Set(i, x.At(dot(from, strides)))
	}
}

// broadcastStrides are the strides of an operand of shape s along a result of shape to.
func broadcastStrides(s, to Shape) []int {
	st := make([]int, len(to))
	dense := s.RowMajor()
	off := len(to) - len(s)
	for d := range s {
		if s[d] != 1 {
			st[off+d] = dense[d]
		}
	}
	return st
}

// unravel is the point with row-major position i.
func unravel(i int, s Shape, point []int) {
	for d := len(s) - 1; d >= 0; d-- {
		point[d] = i % s[d]
		i /= s[d]
	}
}

func dot(a, b []int) int {
	n := 0
	for i := range a {
		n += a[i] * b[i]
	}
	return n
}

// NewDense is a tensor of zeros.
func NewDense(t TensorType) Dense {
	return Dense{t, make([]byte, t.Shape.Elems()*t.DT.Size())}
}

// At is the bits of the element at a row-major position.
func (d *Dense) At(i int) uint64 { return LoadBits(d.DT, d.Data[i*d.DT.Size():]) }

// Set stores the bits of an element.
func (d *Dense) Set(i int, bits uint64) { StoreBits(d.DT, d.Data[i*d.DT.Size():], bits) }
