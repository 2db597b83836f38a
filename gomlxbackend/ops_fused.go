package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// Fused ops are the ops that GoMLX decomposes them into, written the same way:
// Millrace fuses those itself, and in a graph that has both forms, as one with
// gradients does, they are the same nodes, so that nothing is computed twice.

// expansion adds the ops that a fused op stands for. The first error is kept;
// what is added after it is of no use.
type expansion struct {
	f   *Function
	err error
}

// expand checks the operands of a fused op and names it in whatever goes wrong
// in add. Operands behind the first few may be nil, and are then.
func (f *Function) expand(op compute.OpType, needs int, vs []compute.Value, add func(e *expansion, in []*Node) (*Node, error)) (compute.Value, error) {
	list, err := f.expandMany(op, needs, vs, func(e *expansion, in []*Node) ([]*Node, error) {
		n, err := add(e, in)
		return []*Node{n}, err
	})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// expandMany is expand of ops with several results.
func (f *Function) expandMany(op compute.OpType, needs int, vs []compute.Value, add func(e *expansion, in []*Node) ([]*Node, error)) ([]*Node, error) {
	return f.addOp(op, needs, vs, nil, func(in []*Node) ([]*Node, error) {
		e := &expansion{f: f}
		list, err := add(e, in)
		if err == nil {
			err = e.err
		}
		return list, err
	})
}

// broken stands for what could not be added: ops refuse it.
var broken = &Node{fn: &Function{builder: &Builder{}}, shape: shapes.Invalid()}

// get is a value that was added.
func (e *expansion) get(v compute.Value, err error) *Node {
	if e.err == nil {
		e.err = err
	}
	if e.err != nil {
		return broken
	}
	return v.(*Node)
}

// number is a scalar.
func (e *expansion) number(dt dtypes.DType, x float64) *Node {
	if e.err != nil {
		return broken
	}
	flat := dtypes.MakeAnySlice(dt, 1)
	setFirst(flat, shapes.CastAsDType(x, dt))
	return e.get(e.f.Constant(flat))
}

// kept is what was reduced along axes of x with those axes, of dimension 1.
func (e *expansion) kept(reduced, x *Node, axes []int) *Node {
	if e.err != nil {
		return broken
	}
	dims := slices.Clone(x.shape.Dimensions)
	for _, a := range axes {
		dims[a] = 1
	}
	return e.get(e.f.Reshape(reduced, dims...))
}

// mean along axes, whose dimension is 1 then.
func (e *expansion) mean(x *Node, axes []int) *Node {
	if e.err != nil {
		return broken
	}
	count := 1
	for _, a := range axes {
		count *= x.shape.Dimensions[a]
	}
	sum := e.get(e.f.ReduceSum(x, axes...))
	return e.kept(e.get(e.f.Mul(sum, e.number(x.shape.DType, 1/float64(count)))), x, axes)
}

// row is x with as many axes as y, of dimension 1 in front.
func (e *expansion) row(x, y *Node) *Node {
	more := y.shape.Rank() - x.shape.Rank()
	if more <= 0 || e.err != nil {
		return x
	}
	return e.get(e.f.Reshape(x, append(slices.Repeat([]int{1}, more), x.shape.Dimensions...)...))
}

// matrix is x with all axes but the last taken as one, or where first is set all
// but the first.
func (e *expansion) matrix(x *Node, first bool) *Node {
	dims := x.shape.Dimensions
	if len(dims) == 2 || e.err != nil {
		return x
	}
	edge := dims[len(dims)-1]
	if first {
		edge = dims[0]
	}
	rest := 1
	if edge > 0 {
		rest = x.shape.Size() / edge
	}
	if first {
		return e.get(e.f.Reshape(x, edge, rest))
	}
	return e.get(e.f.Reshape(x, rest, edge))
}

// addBias adds a bias, whose axes are the last ones of y, to each row.
func (e *expansion) addBias(y, bias *Node) *Node {
	have, want := bias.shape.Dimensions, y.shape.Dimensions
	if n := len(want) - len(have); e.err == nil && (n < 0 || !slices.Equal(have, want[n:])) {
		e.err = errors.Errorf("a bias %s for a %s, whose last axes it must have", bias.shape, y.shape)
	}
	return e.get(e.f.Add(y, e.row(bias, y)))
}

// mustFloat reports an operand of another kind.
func mustFloat(x *Node) error {
	if !x.shape.DType.IsFloat() {
		return errors.Errorf("not defined for %s", x.shape.DType)
	}
	return nil
}

// FusedSoftmax is exp(x - max)/sum along an axis.
func (f *Function) FusedSoftmax(x compute.Value, axis int) (compute.Value, error) {
	return f.expand(compute.OpTypeFusedSoftmax, 1, []compute.Value{x}, func(e *expansion, in []*Node) (*Node, error) {
		x, axes := in[0], []int{axis}
		if err := mustFloat(x); err != nil {
			return nil, err
		}
		if err := checkAxes(x.shape, axes); err != nil {
			return nil, err
		}
		highest := e.kept(e.get(f.ReduceMax(x, axes...)), x, axes)
		exp := e.get(f.Exp(e.get(f.Sub(x, highest))))
		return e.get(f.Div(exp, e.kept(e.get(f.ReduceSum(exp, axes...)), x, axes))), nil
	})
}

// FusedLayerNorm is (x - mean)/√(variance + ε)·gamma + beta along axes. Gamma
// and beta may be nil.
func (f *Function) FusedLayerNorm(x compute.Value, axes []int, epsilon float64, gamma, beta compute.Value) (compute.Value, error) {
	own(&axes)
	return f.expand(compute.OpTypeFusedLayerNorm, 1, []compute.Value{x, gamma, beta}, func(e *expansion, in []*Node) (*Node, error) {
		x := in[0]
		if err := mustFloat(x); err != nil {
			return nil, err
		}
		from := slices.Clone(axes)
		for i, a := range from {
			if a < 0 {
				from[i] += x.shape.Rank()
			}
		}
		along, err := reducedAxes(x.shape, from)
		if err != nil {
			return nil, err
		}
		centred := e.get(f.Sub(x, e.mean(x, along)))
		variance := e.mean(e.get(f.Mul(centred, centred)), along)
		y := e.get(f.Div(centred, e.get(f.Sqrt(e.get(f.Add(variance, e.number(x.shape.DType, epsilon)))))))
		if gamma := in[1]; gamma != nil {
			y = e.get(f.Mul(y, e.row(gamma, y)))
		}
		if beta := in[2]; beta != nil {
			y = e.get(f.Add(y, e.row(beta, y)))
		}
		if e.err == nil && !y.shape.Equal(x.shape) {
			return nil, errors.Errorf("gamma and beta must not be larger than x: the result would be a %s", y.shape)
		}
		return y, nil
	})
}

// FusedDense is activation(x·weight + bias) for the last axis of x. The bias may
// be nil.
func (f *Function) FusedDense(x, weight, bias compute.Value, config compute.DenseConfig) (compute.Value, error) {
	return f.expand(compute.OpTypeFusedDense, 2, []compute.Value{x, weight, bias}, func(e *expansion, in []*Node) (*Node, error) {
		x, w := in[0], in[1]
		if x.shape.Rank() < 1 || w.shape.Rank() < 2 {
			return nil, errors.New("x must have at least one axis and the weight two")
		}
		first := config.WeightLayout == compute.DenseLayoutInputOutputs
		if !first && config.WeightLayout != compute.DenseLayoutOutputsInput {
			return nil, errors.Errorf("no weight layout %s", config.WeightLayout)
		}
		wide, across, along := w.shape.Dimensions[1:], w.shape.Dimensions[0], 0
		if !first {
			last := w.shape.Rank() - 1
			wide, across, along = w.shape.Dimensions[:last], w.shape.Dimensions[last], 1
		}
		lead := x.shape.Dimensions[:x.shape.Rank()-1]
		if got := x.shape.Dimensions[len(lead)]; got != across {
			return nil, errors.Errorf("x has %d features and the weight %d", got, across)
		}
		rows := x // of a vector there is one
		if x.shape.Rank() != 1 {
			rows = e.matrix(x, false)
		}
		y := e.get(f.DotGeneral(rows, []int{rows.shape.Rank() - 1}, nil, e.matrix(w, first), []int{along}, nil, compute.DotGeneralConfig{}))
		if dims := slices.Concat(lead, wide); !slices.Equal(dims, y.shape.Dimensions) {
			y = e.get(f.Reshape(y, dims...))
		}
		return e.biased(y, in[2], activationOf(config))
	})
}

// FusedAttentionQKVProjection is x·weights, cut into three along the last axis,
// each with a bias of its own, which may be nil.
func (f *Function) FusedAttentionQKVProjection(x, weights, biasQ, biasK, biasV compute.Value, queryDim, keyValueDim int) (q, k, v compute.Value, err error) {
	const op = compute.OpTypeFusedAttentionQKVProjection
	parts, err := f.expandMany(op, 2, []compute.Value{x, weights, biasQ, biasK, biasV}, func(e *expansion, in []*Node) ([]*Node, error) {
		x, w := in[0], in[1]
		all := queryDim + 2*keyValueDim
		if x.shape.Rank() < 1 || queryDim < 1 || keyValueDim < 1 ||
			!slices.Equal(w.shape.Dimensions, []int{x.shape.Dimensions[x.shape.Rank()-1], all}) {
			return nil, errors.Errorf("x must have at least one axis, and the weights be its features by %d + 2·%d", queryDim, keyValueDim)
		}
		rows := e.matrix(x, false)
		both := e.get(f.DotGeneral(rows, []int{1}, nil, w, []int{0}, nil, compute.DotGeneralConfig{}))
		if e.err != nil {
			return nil, e.err
		}
		lead := x.shape.Dimensions[:x.shape.Rank()-1]
		var parts []*Node
		from := 0
		for i, wide := range []int{queryDim, keyValueDim, keyValueDim} {
			part := e.get(f.Slice(both, []int{0, from}, []int{both.shape.Dimensions[0], from + wide}, nil))
			if x.shape.Rank() != 2 {
				part = e.get(f.Reshape(part, append(slices.Clone(lead), wide)...))
			}
			if bias := in[2+i]; bias != nil {
				part = e.addBias(part, bias)
			}
			parts = append(parts, part)
			from += wide
		}
		return parts, nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return parts[0], parts[1], parts[2], nil
}
