package gomlxbackend

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// parameters are those of a graph, as they were declared.
type parameters struct {
	nodes []*Node
	axes  []namedAxis // of any size
}

// namedAxis is an axis of a parameter, and the first one of the same name: itself, or
// one of the same size.
type namedAxis struct {
	place
	first place
	name  string
}

// place is an axis of a parameter.
type place struct{ param, axis int }

func parametersOf(nodes []*Node) *parameters {
	p := &parameters{nodes: nodes}
	first := map[string]place{}
	for i, n := range nodes {
		for k, d := range n.shape.Dimensions {
			if d != shapes.DynamicDim {
				continue
			}
			name, here := n.shape.AxisName(k), place{i, k}
			if _, known := first[name]; !known {
				first[name] = here
			}
			p.axes = append(p.axes, namedAxis{here, first[name], name})
		}
	}
	return p
}

// check says which of the inputs are no buffers, or not of the parameters' shapes.
func (p *parameters) check(inputs []compute.Buffer) error {
	if len(inputs) != len(p.nodes) {
		return errors.Errorf("%d inputs were given for %d parameters", len(inputs), len(p.nodes))
	}
	for i, in := range inputs {
		buf, ok := in.(*Buffer)
		if !ok || buf == nil {
			return errors.Errorf("input %d (%q) is a %T and no buffer of backend %q", i, p.nodes[i].name, in, Name)
		}
		if !accepts(p.nodes[i].shape, buf.shape) {
			return p.misfit(i, buf)
		}
	}
	for _, a := range p.axes {
		if was := a.first.size(inputs); a.size(inputs) != was {
			return errors.Errorf("%v, and axis %q of those before it has %d", p.misfit(a.param, inputs[a.param].(*Buffer)), a.name, was)
		}
	}
	return nil
}

func (p *parameters) misfit(i int, buf *Buffer) error {
	return errors.Errorf("input %d (%q) is a %s, the parameter a %s", i, p.nodes[i].name, buf.shape, p.nodes[i].shape)
}

// accepts reports that shape is the parameter's, which may have axes of any size.
func accepts(of, shape shapes.Shape) bool {
	if shape.DType != of.DType || len(shape.Dimensions) != len(of.Dimensions) {
		return false
	}
	for k, d := range of.Dimensions {
		if d != shape.Dimensions[k] && d != shapes.DynamicDim {
			return false
		}
	}
	return true
}

func (a place) size(inputs []compute.Buffer) int {
	return inputs[a.param].(*Buffer).shape.Dimensions[a.axis]
}

// sizes are those of the axes of any size, for inputs that were checked.
func (p *parameters) sizes(inputs []compute.Buffer) map[string]int {
	size := map[string]int{}
	for _, a := range p.axes {
		size[a.name] = a.size(inputs)
	}
	return size
}
