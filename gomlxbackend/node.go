package gomlxbackend

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// apply records a node's ops. It returns a tensor of its own, never an operand.
type apply func(r *run, in []*millrace.Tensor) *millrace.Tensor

// Node is a value of a function: what compute calls a Value.
type Node struct {
	fn    *Function
	id    int // position in fn.nodes
	op    compute.OpType
	shape shapes.Shape
	in    []*Node
	do    apply // nil for leaves

	doMany  applyMany // of a node with several results
	results []*Node
	values  []*Node // the results as they were asked for, where complex ones are pairs
	re, im  *Node   // of a complex value, which is nothing but these
	flat    *Node   // of a value of many axes, which is nothing but this
	source  *Node   // of a captured value: what it is in the function around

	name     string           // of a parameter
	constant *millrace.Tensor // of a constant
	// splat is the number that all elements are, where that is known and a float64
	// is it exactly.
	splat  *float64
	isView bool // only says where elements of its operand are found
}

// node is a value as what it must be: a node of one of the builder's functions.
func (b *Builder) node(v compute.Value) (*Node, error) {
	n, ok := v.(*Node)
	switch {
	case !ok:
		return nil, errors.Errorf("a %T is not a value of backend %q", v, Name)
	case n == nil:
		return nil, errors.New("the value is nil")
	case n.fn.builder != b:
		return nil, errors.Errorf("a value of builder %q in builder %q", n.fn.builder.name, b.name)
	}
	return n, nil
}

// node is a value that is used in this function: a node of it, or of one around
// it, which is captured.
func (f *Function) node(v compute.Value) (*Node, error) {
	n, err := f.builder.node(v)
	if err == nil && n.fn != f {
		return f.capture(n)
	}
	return n, err
}

// operands are values that a new node uses.
func (f *Function) operands(vs []compute.Value) ([]*Node, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	nodes := make([]*Node, len(vs))
	for i, v := range vs {
		n, err := f.node(v)
		if err != nil {
			return nil, errors.WithMessagef(err, "operand %d", i)
		}
		nodes[i] = n
	}
	return nodes, nil
}

// build checks the operands of an op, has its node made, and names op and
// shapes in whatever error comes of that.
func (f *Function) build(op compute.OpType, vs []compute.Value, make func(in []*Node) (*Node, error)) (compute.Value, error) {
	list, err := f.addOp(op, len(vs), vs, nil, func(in []*Node) ([]*Node, error) {
		if err := unpacked(op, shapesOf(in)...); err != nil {
			return nil, err
		}
		n, err := f.made(op, in, make)
		return []*Node{n}, err
	})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// addOp has an op's results added to the graph, or in a template to each that is
// made of it. Operands behind the first few may be nil, and are then. Axes of the
// result that are dynamic may be given names.
func (f *Function) addOp(op compute.OpType, needs int, vs []compute.Value, names []string, add func(in []*Node) ([]*Node, error)) ([]*Node, error) {
	if err := f.open(); err != nil {
		return nil, errors.WithMessage(err, op.String())
	}
	in := make([]*Node, len(vs))
	var given []*Node
	for i, v := range vs {
		if v == nil && i >= needs {
			continue
		}
		n, err := f.node(v)
		if err != nil {
			return nil, errors.WithMessagef(err, "%s: operand %d", op, i)
		}
		in[i] = n
		given = append(given, n)
	}
	var list []*Node
	var err error
	if f.isTemplate() {
		list, err = f.addRecipe(&recipe{op: op, in: in, names: names, add: add})
	} else {
		list, err = add(in)
	}
	if err != nil {
		return nil, errors.WithMessage(err, signature(op, given))
	}
	return list, nil
}

// signature is an op with its operands' shapes, for errors.
func signature(op compute.OpType, in []*Node) string {
	var s []string
	for _, n := range in {
		s = append(s, n.shape.String())
	}
	return fmt.Sprintf("%s(%s)", op, strings.Join(s, ", "))
}

// nodeKey appends what the same nodes have in common: op, result, attributes and operands. Each op of
// a graph needs one, so only attributes are printed by reflection.
func nodeKey(key []byte, op compute.OpType, shape shapes.Shape, attr any, in []*Node) []byte {
	number := func(n int) { key = append(strconv.AppendInt(key, int64(n), 10), ' ') }
	number(int(op))
	number(int(shape.DType))
	for _, d := range shape.Dimensions {
		number(d)
	}
	key = append(key, '|')
	if attr != nil {
		key = fmt.Append(key, attr)
	}
	key = append(key, '|')
	for _, n := range in {
		number(n.id)
	}
	return key
}

// add is the node of an op, a new one or one that computes the same. attr is
// what the op does besides its operands.
func (f *Function) add(op compute.OpType, shape shapes.Shape, attr any, do apply, in ...*Node) (*Node, error) {
	if err := cmp.Or(f.builder.backend.holds("result", shape), unpacked(op, shape), realOnly(op, shape)); err != nil {
		return nil, err
	}
	if shape.Rank() > maxRank {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "result %s: backend %q has it for at most %d axes", shape, Name, maxRank)
	}
	var room [96]byte
	key := nodeKey(room[:0], op, shape, attr, in)
	if n := f.known[string(key)]; n != nil {
		return n, nil
	}
	n := f.append(&Node{op: op, shape: shape.Clone(), in: in, do: do})
	f.known[string(key)] = n
	return n, nil
}

// append numbers a node. Names of axes that are all empty are none: GoMLX
// compares shapes with what they were before.
func (f *Function) append(n *Node) *Node {
	if !slices.ContainsFunc(n.shape.AxisNames, func(name string) bool { return name != "" }) {
		n.shape.AxisNames = nil
	}
	n.fn, n.id = f, len(f.nodes)
	f.nodes = append(f.nodes, n)
	return n
}

// sameBytes is the largest constant that is looked for among those there are.
const sameBytes = 256

// Constant copies elements into the graph. Dims are as of compute.Function.
func (f *Function) Constant(flat any, dims ...int) (compute.Value, error) {
	make := f.makeConstant
	if f.isTemplate() {
		make = f.templateConstant
	}
	n, err := make(flat, dims)
	if err != nil {
		return nil, errors.WithMessagef(err, "Constant of %v", dims)
	}
	return n, nil
}

func (f *Function) makeConstant(flat any, dims []int) (*Node, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	dt, _, err := flatOf(flat)
	if err != nil {
		return nil, err
	}
	shape := shapes.Shape{DType: dt, Dimensions: append([]int{}, dims...)}
	if err := f.builder.backend.usable("Constant", 0, shape); err != nil {
		return nil, err
	}
	if err := checkFlat(flat, shape); err != nil {
		return nil, err
	}
	if len(dims) > maxRank {
		n, err := f.makeConstant(flat, []int{product(dims)})
		if err != nil {
			return nil, err
		}
		return f.wide(n, shape), nil
	}
	if row, ok := complexRows[dt]; ok {
		re, im := row.split(flat)
		return f.pairOf(compute.OpTypeConstant, func(i int) (*Node, error) { return f.makeConstant([]any{re, im}[i], dims) })
	}
	var key string
	if shape.ByteSize() <= sameBytes {
		key = fmt.Sprintf("constant %s %v %x", dt, dims, dtypes.UnsafeByteSliceFromAny(flat))
		if n := f.known[key]; n != nil {
			return n, nil
		}
		if n := f.builder.small[key]; n != nil { // of another graph
			f.known[key] = f.append(&Node{op: n.op, shape: shape, constant: n.constant, splat: n.splat})
			return f.known[key], nil
		}
	}
	row := dtypeRows[dt]
	t := row.upload(f.builder.backend.dev, flat, dims)
	if err := t.Err(); err != nil {
		return nil, err
	}
	n := f.append(&Node{op: compute.OpTypeConstant, shape: shape, constant: t})
	if shape.Size() == 1 {
		if x, ok := row.number(flat); ok {
			n.splat = &x
		}
	}
	if key == "" {
		f.builder.constants = append(f.builder.constants, t)
	} else {
		f.known[key], f.builder.small[key] = n, n
	}
	return n, nil
}

// kept are the small constants, which all graphs of a builder share.
func (b *Builder) kept() []*millrace.Tensor {
	var list []*millrace.Tensor
	for _, n := range b.small {
		list = append(list, n.constant)
	}
	return list
}

// millraceDType is the dtype of a node's elements on the device.
func (n *Node) millraceDType() millrace.DType { return dtypeRows[n.shape.DType].dt }
