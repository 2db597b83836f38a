package gomlxbackend

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/pkg/errors"
)

// activations has a row for each that a dense layer can end with.
var activations = map[compute.ActivationType]func(e *expansion, x *Node) *Node{
	compute.ActivationNone: func(_ *expansion, x *Node) *Node { return x },
	compute.ActivationGelu: (*expansion).gelu,
	compute.ActivationTanh: func(e *expansion, x *Node) *Node { return e.get(e.f.Tanh(x)) },
	compute.ActivationSilu: func(e *expansion, x *Node) *Node { return e.get(e.f.Mul(x, e.get(e.f.Logistic(x)))) },
	compute.ActivationRelu: func(e *expansion, x *Node) *Node {
		zeros := e.get(e.f.BroadcastInDim(e.number(x.shape.DType, 0), x.shape, nil))
		return e.get(e.f.Max(x, zeros))
	},
	compute.ActivationHardSwish: func(e *expansion, x *Node) *Node {
		dt := x.shape.DType
		line := e.get(e.f.Add(e.get(e.f.Mul(x, e.number(dt, 1.0/6))), e.number(dt, 0.5)))
		return e.get(e.f.Mul(x, e.get(e.f.Clamp(e.number(dt, 0), line, e.number(dt, 1)))))
	},
}

// gelu is x·½·(1 + erf(x/√2)).
func (e *expansion) gelu(x *Node) *Node {
	dt := x.shape.DType
	erf := e.get(e.f.Erf(e.get(e.f.Mul(x, e.number(dt, 1/math.Sqrt2)))))
	return e.get(e.f.Mul(x, e.get(e.f.Mul(e.get(e.f.Add(erf, e.number(dt, 1))), e.number(dt, 0.5)))))
}

// geluTanh is gelu's approximation x·½·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
func (e *expansion) geluTanh(x *Node) *Node {
	dt := x.shape.DType
	cube := e.get(e.f.Mul(e.get(e.f.Pow(x, e.number(dt, 3))), e.number(dt, 0.044715)))
	tanh := e.get(e.f.Tanh(e.get(e.f.Mul(e.get(e.f.Add(x, cube)), e.number(dt, math.Sqrt(2/math.Pi))))))
	return e.get(e.f.Mul(x, e.get(e.f.Mul(e.get(e.f.Add(e.number(dt, 1), tanh)), e.number(dt, 0.5)))))
}

// biased adds a bias, if there is one, to each row, and applies an activation.
func (e *expansion) biased(y, bias *Node, activation compute.ActivationType) (*Node, error) {
	if bias != nil {
		y = e.addBias(y, bias)
	}
	act, ok := activations[activation]
	if !ok {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "backend %q has no activation %s", Name, activation)
	}
	return act(e, y), nil
}

// FusedGelu is x·½·(1 + erf(x/√2)), or an approximation with tanh.
func (f *Function) FusedGelu(x compute.Value, exact bool) (compute.Value, error) {
	return f.expand(compute.OpTypeFusedGelu, 1, []compute.Value{x}, func(e *expansion, in []*Node) (*Node, error) {
		if err := mustFloat(in[0]); err != nil {
			return nil, err
		}
		if exact {
			return e.gelu(in[0]), nil
		}
		return e.geluTanh(in[0]), nil
	})
}
