package onnx

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// weights finds the initializers that some node reads as elements of a tensor. The others are read
// on the host alone, such as the scales of Resize.
func (b *builder) weights(p *protoGraph, opsets map[string]int) map[string]bool {
	used := map[string]bool{}
	var walk func(nodes []*protoNode)
	walk = func(nodes []*protoNode) {
		for _, n := range nodes {
			row := find(n.op, opsets[""])
			for i, name := range n.inputs {
				if row == nil || domainOf(n.domain) != "" || row.onHost&(1<<min(i, 31)) == 0 {
					used[name] = true
				}
			}
			for _, a := range n.attrs {
				if a.g != nil {
					walk(a.g.nodes)
				}
			}
		}
	}
	walk(p.nodes)
	for _, o := range p.outputs {
		used[o.name] = true
	}
	return used
}

// initializer loads one. Floats with at least one dimension are parameters, unless the graph reads
// them on the host alone. Other values are constants.
func (b *builder) initializer(g *graph, t *protoTensor, prefix string, weights map[string]bool) {
	dt, err := dtypeOf(t.elem)
	if err != nil {
		b.fail("initializer %q: %w", t.name, err)
		return
	}
	if !isFloat(dt) || len(t.dims) == 0 || !weights[t.name] {
		v, err := b.constant(t)
		if err != nil {
			b.fail("initializer %q: %w", t.name, err)
			return
		}
		g.consts[t.name] = v
		return
	}
	x, err := load(b.m.place, t, b.store)
	if err != nil {
		b.fail("initializer %q: %w", t.name, err)
		return
	}
	p := nn.NewParam(x)
	g.params[t.name] = p
	b.m.params = append(b.m.params, nn.Named{Name: prefix + t.name, Param: p})
}

// checkInitializer compares an initializer with the input of the same name.
func (b *builder) checkInitializer(g *graph, v *protoValue) {
	in := b.input(v, true)
	var shape []int
	dt := millrace.Invalid
	if p := g.params[v.name]; p != nil {
		shape, dt = p.Tensor().Shape(), p.Tensor().DType()
	} else if c := g.consts[v.name]; c != nil {
		shape, dt = c.shape(), c.dtype()
	}
	if dt == millrace.Invalid || in.any {
		return
	}
	if err := in.fits(dt, shape, map[string]int{}); err != nil {
		b.fail("initializer %q: %w", v.name, err)
	}
}

// fits compares a tensor with the type of an input. sizes are those of named dimensions so far.
func (in *input) fits(dt millrace.DType, shape []int, sizes map[string]int) error {
	if dt != in.dtype {
		return fmt.Errorf("%w: dtype %v, and the model declares %v", millrace.ErrDType, dt, in.dtype)
	}
	if !in.rank {
		return nil
	}
	if len(shape) != len(in.dims) {
		return fmt.Errorf("%w: shape %v, and the model declares %d dimensions", millrace.ErrShape, shape, len(in.dims))
	}
	for i, d := range in.dims {
		if d.size >= 0 && d.size != shape[i] {
			return fmt.Errorf("%w: shape %v, and the model declares size %d for dimension %d", millrace.ErrShape, shape, d.size, i)
		}
		if d.name == "" {
			continue
		}
		if n, ok := sizes[d.name]; ok && n != shape[i] {
			return fmt.Errorf("%w: shape %v, and dimension %d (%s) has size %d elsewhere", millrace.ErrShape, shape, i, d.name, n)
		}
		sizes[d.name] = shape[i]
	}
	return nil
}
