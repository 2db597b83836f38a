//go:build go1.27 && !compute_go126

package gomlxbackend

import (
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

func init() { maps.Copy(activations, laterActivations) }

// Constants of Selu.
const seluAlpha, seluScale = 1.6732632423543772848, 1.0507009873554804934

// laterActivations are rows of activations.
var laterActivations = map[compute.ActivationType]func(e *expansion, x *Node) *Node{
	compute.ActivationSigmoid:         func(e *expansion, x *Node) *Node { return e.get(e.f.Logistic(x)) },
	compute.ActivationGeluApproximate: (*expansion).geluTanh,
	compute.ActivationHardSigmoid: func(e *expansion, x *Node) *Node {
		return e.get(e.f.Clamp(e.like(x, 0), e.plus(e.times(x, 0.2), 0.5), e.like(x, 1)))
	},
	compute.ActivationLeakyRelu: func(e *expansion, x *Node) *Node {
		return e.where(e.get(e.f.GreaterOrEqual(x, e.like(x, 0))), x, e.times(x, 0.3))
	},
	compute.ActivationSelu: func(e *expansion, x *Node) *Node {
		return e.times(e.where(e.above(x, 0), x, e.times(e.plus(e.exp(x), -1), seluAlpha)), seluScale)
	},
}

// slopes has a row for each activation: its derivative where its value is y and,
// of those that take it, its operand x.
var slopes = map[compute.ActivationType]func(e *expansion, y, x *Node) *Node{
	compute.ActivationRelu: func(e *expansion, y, _ *Node) *Node {
		return e.where(e.above(y, 0), e.like(y, 1), e.like(y, 0))
	},
	compute.ActivationSigmoid: func(e *expansion, y, _ *Node) *Node { return e.mul(y, e.oneLess(y)) },
	compute.ActivationHardSigmoid: func(e *expansion, y, _ *Node) *Node {
		return e.where(e.and(e.above(y, 0), e.below(y, 1)), e.like(y, 0.2), e.like(y, 0))
	},
	compute.ActivationLeakyRelu: func(e *expansion, y, _ *Node) *Node {
		return e.where(e.get(e.f.GreaterOrEqual(y, e.like(y, 0))), e.like(y, 1), e.like(y, 0.3))
	},
	compute.ActivationSelu: func(e *expansion, y, _ *Node) *Node {
		return e.where(e.above(y, 0), e.like(y, seluScale), e.plus(y, seluScale*seluAlpha))
	},
	compute.ActivationTanh: func(e *expansion, y, _ *Node) *Node { return e.oneLess(e.square(y)) },
	compute.ActivationSilu: func(e *expansion, _, x *Node) *Node { return e.siluSlope(x) },
	compute.ActivationHardSwish: func(e *expansion, _, x *Node) *Node {
		line := e.plus(e.times(x, 1.0/3), 0.5)
		return e.where(e.below(x, -3), e.like(x, 0), e.where(e.above(x, 3), e.like(x, 1), line))
	},
	compute.ActivationGelu: func(e *expansion, _, x *Node) *Node {
		share := e.times(e.plus(e.get(e.f.Erf(e.times(x, 1/math.Sqrt2))), 1), 0.5)
		density := e.times(e.exp(e.times(e.square(x), -0.5)), 1/math.Sqrt(2*math.Pi))
		return e.add(share, e.mul(x, density))
	},
	compute.ActivationGeluApproximate: func(e *expansion, _, x *Node) *Node {
		const a, b = 0.044715, 0.7978845608028654 // √(2/π)
		tanh := e.get(e.f.Tanh(e.times(e.mul(x, e.plus(e.times(e.square(x), a), 1)), b)))
		inner := e.times(e.plus(e.times(e.square(x), 3*a), 1), b)
		share := e.times(e.plus(tanh, 1), 0.5)
		return e.add(share, e.times(e.mul(x, e.mul(e.oneLess(e.square(tanh)), inner)), 0.5))
	},
}

// oneLess is 1 - x.
func (e *expansion) oneLess(x *Node) *Node { return e.sub(e.like(x, 1), x) }

// siluSlope is the derivative of x·σ(x).
func (e *expansion) siluSlope(x *Node) *Node {
	s := e.get(e.f.Logistic(x))
	return e.add(s, e.mul(x, e.mul(s, e.oneLess(s))))
}

// shapeOf is a node's shape, or none where there is no node.
func shapeOf(n *Node) shapes.Shape {
	if n == nil {
		return shapes.Invalid()
	}
	return n.shape
}

// FusedActivation applies an activation.
func (f *Function) FusedActivation(x compute.Value, cfg compute.ActivationConfig) (compute.Value, error) {
	return f.expand(compute.OpTypeFusedActivation, 1, []compute.Value{x}, func(e *expansion, in []*Node) (*Node, error) {
		x := in[0]
		if _, err := shapeinference.FusedActivation(x.shape, cfg); err != nil {
			return nil, err
		}
		if err := mustFloat(x); err != nil {
			return nil, err
		}
		if cfg.Type == compute.ActivationSwiGLU {
			gate, value := e.halves(x)
			return e.mul(activations[compute.ActivationSilu](e, gate), value), nil
		}
		return activations[cfg.Type](e, x), nil
	})
}

// halves are the first and the second half along the last axis.
func (e *expansion) halves(x *Node) (first, second *Node) {
	dims := x.shape.Dimensions
	from, to, last := make([]int, len(dims)), slices.Clone(dims), len(dims)-1
	to[last] /= 2
	first = e.get(e.f.Slice(x, from, to, nil))
	from[last], to[last] = to[last], dims[last]
	return first, e.get(e.f.Slice(x, from, to, nil))
}

// FusedActivationVJP is the gradient of an activation's operand: that of its
// value, dOutput, times the slope. Activations that need x say so; the others
// take its value y, or compute it.
func (f *Function) FusedActivationVJP(y, x, dOutput compute.Value, cfg compute.ActivationConfig) (compute.Value, error) {
	return f.expand(compute.OpTypeFusedActivationVJP, 1, []compute.Value{dOutput, y, x}, func(e *expansion, in []*Node) (*Node, error) {
		d, y, x := in[0], in[1], in[2]
		if _, err := shapeinference.FusedActivationVJP(shapeOf(y), shapeOf(x), d.shape, cfg); err != nil {
			return nil, err
		}
		if err := mustFloat(d); err != nil {
			return nil, err
		}
		if cfg.Type == compute.ActivationSwiGLU {
			gate, value := e.halves(x)
			dGate := e.mul(e.mul(d, value), e.siluSlope(gate))
			dValue := e.mul(d, activations[compute.ActivationSilu](e, gate))
			return e.get(f.Concatenate(x.shape.Rank()-1, dGate, dValue)), nil
		}
		return e.gradient(cfg.Type, d, y, x), nil
	})
}

func (e *expansion) gradient(a compute.ActivationType, d, y, x *Node) *Node {
	switch {
	case a == compute.ActivationNone:
		return d
	case y == nil && !a.VJPRequiresInput():
		y = activations[a](e, x)
	}
	return e.mul(d, slopes[a](e, y, x))
}

// FusedDenseVJP are the gradients of FusedDense's operands, for activations whose
// slope the value tells. There is none of the bias without one.
func (f *Function) FusedDenseVJP(x, weight, bias, y, dOutput compute.Value, options compute.DenseConfig) (dx, dWeight, dBias compute.Value, err error) {
	const op = compute.OpTypeFusedDenseVJP
	grads, err := f.expandMany(op, 4, []compute.Value{x, weight, y, dOutput, bias}, func(e *expansion, in []*Node) ([]*Node, error) {
		x, w, y, d, bias := in[0], in[1], in[2], in[3], in[4]
		if _, _, _, err := shapeinference.FusedDenseVJP(x.shape, w.shape, shapeOf(bias), y.shape, d.shape, options); err != nil {
			return nil, err
		}
		if err := mustFloat(x); err != nil {
			return nil, err
		}
		first := options.WeightLayout == compute.DenseLayoutInputOutputs
		along := 0 // the axis of the weight, as a matrix, that the outputs lie along
		if first {
			along = 1
		}
		outputs := w.shape.Size()
		if n := x.shape.Dimensions[x.shape.Rank()-1]; n > 0 {
			outputs /= n
		}
		all := e.gradient(options.Activation.Type, d, y, nil)
		dz, rows := e.rows(all, outputs), e.rows(x, x.shape.Dimensions[x.shape.Rank()-1])
		dot := func(a *Node, i int, b *Node, j int) *Node {
			return e.get(f.DotGeneral(a, []int{i}, nil, b, []int{j}, nil, compute.DotGeneralConfig{}))
		}
		dx := e.shaped(dot(dz, 1, e.matrix(w, first), along), x)
		dw := dot(dz, 0, rows, 0)
		if first {
			dw = dot(rows, 0, dz, 0)
		}
		grads := []*Node{dx, e.shaped(dw, w)}
		if bias != nil {
			grads = append(grads, e.shaped(e.get(f.ReduceSum(dz, 0)), bias))
		}
		return grads, nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if len(grads) == 2 {
		return grads[0], grads[1], nil, nil
	}
	return grads[0], grads[1], grads[2], nil
}

// rows is x as a matrix with rows of n elements.
func (e *expansion) rows(x *Node, n int) *Node {
	if e.err != nil {
		return broken
	}
	count := 1
	if n > 0 {
		count = x.shape.Size() / n
	}
	return e.get(e.f.Reshape(x, count, n))
}

// shaped is x with the dimensions of another node.
func (e *expansion) shaped(x, like *Node) *Node {
	if e.err != nil {
		return broken
	}
	if slices.Equal(x.shape.Dimensions, like.shape.Dimensions) {
		return x
	}
	if x.shape.Size() != like.shape.Size() {
		e.err = errors.Errorf("a gradient of %s for a %s", x.shape, like.shape)
		return broken
	}
	return e.get(e.f.Reshape(x, like.shape.Dimensions...))
}
