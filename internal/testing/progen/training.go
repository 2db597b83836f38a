package progen

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Step is a step of a training loop, as a program that records forward, backward and update op by
// op. The first Data inputs are the batch, the others parameters; the outputs are the loss, and
// then each parameter's new value.
type Step struct {
	*ir.Graph
	Data int
}

// Chain is layers of tanh(x*a+b) on n numbers, with 0-d a and b and the sum of squares as the loss.
func Chain(layers, n int) Step {
	d := newDraft(ir.Shape{n})
	y := 0
	for range layers {
		a, b := d.param(), d.param()
		y = d.add(ir.Tanh, d.add(ir.Add, d.add(ir.Mul, y, a), b))
	}
	return d.step(d.sum(d.add(ir.Mul, y, y), false, 0))
}

// Transformer is a small language model: causal attention in heads, each with separate products,
// and two layers with GELU, both after a layer norm.
func Transformer(layers, heads, rows, width int) Step {
	d := newDraft(ir.Shape{rows, width}, ir.Shape{rows, rows})
	x := 0
	for range layers {
		y := d.norm(x)
		for range heads {
			q := d.matmul(y, d.param(width, width/heads))
			k := d.matmul(y, d.param(width, width/heads))
			v := d.matmul(y, d.param(width, width/heads))
			w := d.softmax(d.add(ir.Add, d.scaled(ir.Mul, d.matmul(q, d.t(k)), 0.5), 1))
			x = d.add(ir.Add, x, d.matmul(d.matmul(w, v), d.param(width/heads, width)))
		}
		y = d.add(ir.Add, d.matmul(d.norm(x), d.param(width, 4*width)), d.param(4*width))
		x = d.add(ir.Add, x, d.matmul(d.gelu(y), d.param(4*width, width)))
	}
	x = d.norm(x)
	return d.step(d.scaled(ir.Mul, d.sum(d.add(ir.Mul, x, x), false, 0, 1), 1/float32(rows)))
}

// draft is a step being written.
type draft struct {
	p     *ir.Graph
	types []ir.TensorType
	data  int
	wants []bool // it depends on a parameter
	nodes []int  // node of each tensor, -1 for an input
}

// newDraft makes a draft with inputs that are no parameters. All inputs come before all nodes;
// parameters, which are not known yet, are numbered from 1<<20 on meanwhile.
func newDraft(data ...ir.Shape) *draft {
	d := &draft{p: &ir.Graph{}, data: len(data)}
	for _, s := range data {
		d.input(s)
	}
	return d
}

// maxParams is the number of parameters that a draft has room for among its inputs.
const maxParams = 1 << 10

func (d *draft) input(s ir.Shape) int {
	if d.types == nil {
		d.types = make([]ir.TensorType, maxParams)
		d.wants = make([]bool, maxParams)
		d.nodes = slices.Repeat([]int{-1}, maxParams)
	}
	id := len(d.p.Inputs)
	d.p.Inputs = append(d.p.Inputs, ir.TensorType{DT: ir.Float32, Shape: s})
	d.types[id] = d.p.Inputs[id]
	return id
}

func (d *draft) param(shape ...int) int {
	id := d.input(shape)
	d.wants[id] = true
	return id
}

// node appends an op; scalars are operands after the tensors.
func (d *draft) node(op ir.Op, attr *ir.Attr, shape ir.Shape, scalars []float32, args ...int) int {
	n := ir.Node{Op: op, Attr: attr, Shape: shape, DT: ir.Float32, NArgs: uint8(len(args) + len(scalars))}
	var in []ir.Operand
	wants := false
	for i, a := range args {
		n.Args[i] = ir.T(a)
		in = append(in, ir.Operand{DT: ir.Float32, Shape: d.types[a].Shape})
		wants = wants || d.wants[a]
	}
	for i, s := range scalars {
		d.p.Scalars = append(d.p.Scalars, ir.ScalarValue{DT: ir.Float32, Bits: uint64(math.Float32bits(s))})
		n.Args[len(args)+i] = ir.S(len(d.p.Scalars) - 1)
		in = append(in, ir.Operand{DT: ir.Float32, Scalar: true})
	}
	dt, result, err := ir.Infer(op, attr, ir.Float32, shape, in...)
	if err != nil {
		panic(fmt.Sprintf("a training step: %v", err))
	}
	n.DT, n.Shape = dt, result
	d.p.Nodes = append(d.p.Nodes, n)
	d.types = append(d.types, ir.TensorType{DT: dt, Shape: result})
	d.wants = append(d.wants, wants)
	d.nodes = append(d.nodes, len(d.p.Nodes)-1)
	return len(d.types) - 1
}

func (d *draft) add(op ir.Op, args ...int) int { return d.node(op, nil, nil, nil, args...) }

func (d *draft) scaled(op ir.Op, x int, by float32) int {
	return d.node(op, nil, nil, []float32{by}, x)
}

func (d *draft) sum(x int, keep bool, axes ...int) int {
	return d.node(ir.Sum, &ir.Attr{Axes: axes, Keep: keep}, nil, nil, x)
}

func (d *draft) t(x int) int {
	return d.node(ir.Permute, &ir.Attr{Axes: []int{1, 0}}, nil, nil, x)
}

// matmul is a product of matrices as the public op records it.
func (d *draft) matmul(a, b int) int {
	m, k, n := d.types[a].Shape[0], d.types[a].Shape[1], d.types[b].Shape[1]
	all := ir.Shape{m, n, k}
	a = d.node(ir.Expand, nil, all, nil, d.node(ir.Reshape, nil, ir.Shape{m, 1, k}, nil, a))
	return d.node(ir.Dot, &ir.Attr{Axes: []int{2}}, nil, nil, a, d.node(ir.Expand, nil, all, nil, d.t(b)))
}

func (d *draft) norm(x int) int {
	per := 1 / float32(d.types[x].Shape[1])
	y := d.add(ir.Sub, x, d.scaled(ir.Mul, d.sum(x, true, 1), per))
	v := d.scaled(ir.Add, d.scaled(ir.Mul, d.sum(d.add(ir.Mul, y, y), true, 1), per), 1e-5)
	return d.add(ir.Mul, y, d.add(ir.Rsqrt, v))
}

func (d *draft) softmax(x int) int {
	m := d.node(ir.Max, &ir.Attr{Axes: []int{1}, Keep: true}, nil, nil, x)
	d.wants[m] = false // its derivative cancels out
	e := d.add(ir.Exp, d.add(ir.Sub, x, m))
	return d.add(ir.Div, e, d.sum(e, true, 1))
}

func (d *draft) gelu(x int) int {
	cube := d.add(ir.Mul, d.add(ir.Mul, x, x), x)
	t := d.add(ir.Tanh, d.scaled(ir.Mul, d.add(ir.Add, x, d.scaled(ir.Mul, cube, 0.044715)), 0.79788456))
	return d.add(ir.Mul, d.scaled(ir.Mul, x, 0.5), d.scaled(ir.Add, t, 1))
}

// step appends backward and update, and assigns tensors their final numbers.
func (d *draft) step(loss int) Step {
	grads := map[int]int{}
	give := func(to, g int) {
		if !d.wants[to] {
			return
		}
		g = d.fit(g, d.types[to].Shape)
		if have, ok := grads[to]; ok {
			g = d.add(ir.Add, have, g)
		}
		grads[to] = g
	}
	one := d.node(ir.Full, nil, ir.Shape{}, []float32{1})
	give(loss, one)
	for t := loss; t >= maxParams; t-- {
		if g, ok := grads[t]; ok {
			d.backward(t, g, give)
		}
	}
	outputs := []int{loss}
	for id := d.data; id < len(d.p.Inputs); id++ {
		outputs = append(outputs, d.add(ir.Sub, id, d.scaled(ir.Mul, grads[id], 0.01)))
	}
	number := func(t int) int {
		if t < maxParams {
			return t
		}
		return t - maxParams + len(d.p.Inputs)
	}
	for i := range d.p.Nodes {
		n := &d.p.Nodes[i]
		for k := range n.Args[:n.NArgs] {
			if a := &n.Args[k]; !a.Scalar {
				a.ID = int32(number(int(a.ID)))
			}
		}
	}
	for _, t := range outputs {
		d.p.Outputs = append(d.p.Outputs, number(t))
	}
	return Step{d.p, d.data}
}

// backward adds to the derivatives of the operands of t's node, where t's derivative is g.
func (d *draft) backward(t, g int, give func(to, g int)) {
	n := d.p.Nodes[d.nodes[t]]
	x, y := int(n.Args[0].ID), int(n.Args[1].ID)
	scalar := n.NArgs == 2 && n.Args[1].Scalar
	switch n.Op {
	case ir.Add, ir.Sub:
		give(x, g)
		switch {
		case scalar:
		case n.Op == ir.Sub:
			give(y, d.add(ir.Neg, g))
		default:
			give(y, g)
		}
	case ir.Mul:
		if scalar {
			by := math.Float32frombits(uint32(d.p.Scalars[n.Args[1].ID].Bits))
			give(x, d.scaled(ir.Mul, g, by))
			return
		}
		give(x, d.add(ir.Mul, g, y))
		give(y, d.add(ir.Mul, g, x))
	case ir.Div:
		give(x, d.add(ir.Div, g, y))
		give(y, d.add(ir.Neg, d.add(ir.Mul, g, d.add(ir.Div, t, y))))
	case ir.Exp:
		give(x, d.add(ir.Mul, g, t))
	case ir.Tanh:
		give(x, d.add(ir.Mul, g, d.scaled(ir.Add, d.add(ir.Neg, d.add(ir.Mul, t, t)), 1)))
	case ir.Rsqrt:
		give(x, d.scaled(ir.Mul, d.add(ir.Mul, g, d.add(ir.Mul, t, d.add(ir.Mul, t, t))), -0.5))
	case ir.Sum:
		shape := slices.Clone(d.types[x].Shape)
		for _, a := range n.Attr.Axes {
			shape[a] = 1
		}
		if !n.Attr.Keep {
			g = d.node(ir.Reshape, nil, shape, nil, g)
		}
		give(x, d.node(ir.Expand, nil, d.types[x].Shape, nil, g))
	case ir.Permute:
		give(x, d.t(g))
	case ir.Reshape:
		give(x, d.node(ir.Reshape, nil, d.types[x].Shape, nil, g))
	case ir.Dot: // its operands are views of two matrices
		a := int(d.p.Nodes[d.nodes[int(d.p.Nodes[d.nodes[x]].Args[0].ID)]].Args[0].ID)
		b := int(d.p.Nodes[d.nodes[int(d.p.Nodes[d.nodes[y]].Args[0].ID)]].Args[0].ID)
		give(a, d.matmul(g, d.t(b)))
		give(b, d.matmul(d.t(a), g))
	default:
		panic(fmt.Sprintf("no derivative of %v", n.Op))
	}
}

// fit sums a derivative over the dims along which its operand was broadcast.
func (d *draft) fit(g int, to ir.Shape) int {
	from := d.types[g].Shape
	var axes []int
	for i := range from {
		if k := i - len(from) + len(to); k < 0 || to[k] == 1 && from[i] > 1 {
			axes = append(axes, i)
		}
	}
	if axes == nil {
		return g
	}
	if g = d.sum(g, false, axes...); d.types[g].Shape.Equal(to) {
		return g
	}
	return d.node(ir.Reshape, nil, to, nil, g)
}
