package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/pkg/errors"
)

// Batch normalisation is the ops it is defined by, of which Millrace makes
// kernels of rows. 16-bit floats are computed in float32.

// batchNorm is what the three ops have in common: x, the features' axis, and the
// other ones.
type batchNorm struct {
	*expansion
	x       *Node
	dt      dtypes.DType // of x as it was given
	feature int
	others  []int
}

// batchNorm checks operands: x, those of x's shape behind it, as many as like
// says, and vectors with an element for each feature.
func (e *expansion) batchNorm(in []*Node, like, feature int) (*batchNorm, error) {
	x := in[0]
	if err := mustFloat(x); err != nil {
		return nil, err
	}
	if feature < 0 || feature >= x.shape.Rank() {
		return nil, errors.Errorf("features along axis %d of a %s", feature, x.shape)
	}
	for i, n := range in[1:] {
		switch {
		case n.shape.DType != x.shape.DType:
			return nil, errors.Errorf("operand %d is a %s, the first a %s", i+1, n.shape, x.shape)
		case i < like && !n.shape.EqualDimensions(x.shape):
			return nil, errors.Errorf("operand %d is a %s and not of the shape of the first, %s", i+1, n.shape, x.shape)
		case i >= like && !slices.Equal(n.shape.Dimensions, []int{x.shape.Dimensions[feature]}):
			return nil, errors.Errorf("operand %d is a %s and no vector of the %d features", i+1, n.shape, x.shape.Dimensions[feature])
		}
	}
	b := &batchNorm{expansion: e, dt: x.shape.DType, feature: feature, others: kept(x.shape.Rank(), []int{feature})}
	for i, n := range in {
		in[i] = b.wide(n)
	}
	b.x = in[0]
	return b, nil
}

// wide is a value as it is computed with.
func (b *batchNorm) wide(n *Node) *Node {
	if !b.dt.IsHalfPrecision() {
		return n
	}
	return b.get(b.f.ConvertDType(n, dtypes.Float32))
}

// back is a result in the dtype of the operands.
func (b *batchNorm) back(n *Node) *Node { return b.get(b.f.ConvertDType(n, b.dt)) }

// each is a vector with x's axes.
func (b *batchNorm) each(n *Node) *Node {
	if b.err != nil {
		return broken
	}
	dims := slices.Repeat([]int{1}, b.x.shape.Rank())
	dims[b.feature] = b.x.shape.Dimensions[b.feature]
	return b.get(b.f.Reshape(n, dims...))
}

// sum of each feature.
func (b *batchNorm) sum(n *Node) *Node {
	if len(b.others) == 0 {
		return n
	}
	return b.get(b.f.ReduceSum(n, b.others...))
}

// average of each feature.
func (b *batchNorm) average(n *Node) *Node {
	count := 1
	for _, a := range b.others {
		count *= b.x.shape.Dimensions[a]
	}
	return b.get(b.f.Div(b.sum(n), b.number(b.x.shape.DType, float64(count))))
}

// scaled is x less its mean, divided by the root of the variance and ε; and the
// reciprocal of that root, with x's axes.
func (b *batchNorm) scaled(mean, variance *Node, epsilon float32) (y, reciprocal *Node) {
	f := b.f
	root := b.get(f.Rsqrt(b.get(f.Add(variance, b.number(b.x.shape.DType, float64(epsilon))))))
	reciprocal = b.each(root)
	return b.get(f.Mul(b.get(f.Sub(b.x, b.each(mean))), reciprocal)), reciprocal
}

// affine is y·scale + offset.
func (b *batchNorm) affine(y, scale, offset *Node) *Node {
	return b.get(b.f.Add(b.get(b.f.Mul(y, b.each(scale))), b.each(offset)))
}

// BatchNormForInference normalises with a mean and a variance that are given.
func (f *Function) BatchNormForInference(operand, scale, offset, mean, variance compute.Value, epsilon float32, featureAxis int) (compute.Value, error) {
	in := []compute.Value{operand, scale, offset, mean, variance}
	return f.expand(compute.OpTypeBatchNormForInference, len(in), in, func(e *expansion, in []*Node) (*Node, error) {
		b, err := e.batchNorm(in, 0, featureAxis)
		if err != nil {
			return nil, err
		}
		y, _ := b.scaled(in[3], in[4], epsilon)
		return b.back(b.affine(y, in[1], in[2])), nil
	})
}

// BatchNormForTraining normalises with the batch's own mean and variance, which
// it gives too. The variance is the mean of squares, of as many as there are.
func (f *Function) BatchNormForTraining(operand, scale, offset compute.Value, epsilon float32, featureAxis int) (normalized, batchMean, batchVariance compute.Value, err error) {
	in := []compute.Value{operand, scale, offset}
	list, err := f.expandMany(compute.OpTypeBatchNormForTraining, len(in), in, func(e *expansion, in []*Node) ([]*Node, error) {
		b, err := e.batchNorm(in, 0, featureAxis)
		if err != nil {
			return nil, err
		}
		mean := b.average(b.x)
		centred := e.get(f.Sub(b.x, b.each(mean)))
		variance := b.average(e.get(f.Mul(centred, centred)))
		y, _ := b.scaled(mean, variance, epsilon)
		return []*Node{b.back(b.affine(y, in[1], in[2])), b.back(mean), b.back(variance)}, nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return list[0], list[1], list[2], nil
}

// BatchNormGradient gives the gradients of the operand, the scale and the offset
// of BatchNormForTraining, for that of its first result.
func (f *Function) BatchNormGradient(operand, scale, mean, variance, gradOutput compute.Value, epsilon float32, featureAxis int) (gradOperand, gradScale, gradOffset compute.Value, err error) {
	in := []compute.Value{operand, gradOutput, scale, mean, variance}
	list, err := f.expandMany(compute.OpTypeBatchNormGradient, len(in), in, func(e *expansion, in []*Node) ([]*Node, error) {
		b, err := e.batchNorm(in, 1, featureAxis)
		if err != nil {
			return nil, err
		}
		grad := in[1]
		y, reciprocal := b.scaled(in[3], in[4], epsilon)
		along := e.get(f.Mul(grad, y)) // y's own part of the gradient
		rest := e.get(f.Sub(grad, b.each(b.average(grad))))
		rest = e.get(f.Sub(rest, e.get(f.Mul(y, b.each(b.average(along))))))
		whole := e.get(f.Mul(e.get(f.Mul(rest, reciprocal)), b.each(in[2])))
		return []*Node{b.back(whole), b.back(b.sum(along)), b.back(b.sum(grad))}, nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return list[0], list[1], list[2], nil
}
