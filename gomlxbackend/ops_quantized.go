package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// FusedQuantizedDense is activation(x·w + bias), where w is what the quantized
// weights stand for: a number of a table or the integer itself, times the scale
// of its block, plus the block's zero point. It is taken apart where the product
// reads it and is never in memory. Of the scheme GGML the weights are [outputs, bytes],
// blocks with their scales in them.
func (f *Function) FusedQuantizedDense(x, weights, bias compute.Value, quantization *compute.Quantization,
	activation compute.ActivationType) (compute.Value, error) {
	const op = compute.OpTypeFusedQuantizedDense
	if quantization == nil {
		return nil, errors.Errorf("%s: the quantization is missing", op)
	}
	q := *quantization
	switch q.Scheme {
	case compute.QuantLinear, compute.QuantNF4:
	case compute.QuantGGML:
		return f.expand(op, 2, []compute.Value{x, weights, bias}, func(e *expansion, in []*Node) (*Node, error) {
			return e.quantizedBlocks(q, in[0], in[1], in[2], activation)
		})
	default:
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s: backend %q has no scheme %s", op, Name, q.Scheme)
	}
	return f.expand(op, 3, []compute.Value{x, weights, q.Scale, bias, q.ZeroPoint}, func(e *expansion, in []*Node) (*Node, error) {
		x, w, scale, bias, zero := in[0], in[1], in[2], in[3], in[4]
		if err := checkQuantized(q, x, w, scale, zero); err != nil {
			return nil, err
		}
		var values *Node
		if q.Scheme == compute.QuantNF4 {
			values = e.lookUp(compute.NF4LookupTable[:], w)
		} else {
			values = e.get(f.ConvertDType(w, dtypes.Float32))
		}
		values = e.get(f.Mul(values, e.blocks(scale, w, q.BlockSize)))
		if zero != nil {
			values = e.get(f.Add(values, e.blocks(zero, w, q.BlockSize)))
		}
		rows := e.matrix(x, false)
		y := e.get(f.DotGeneral(rows, []int{1}, nil, values, []int{0}, nil, compute.DotGeneralConfig{}))
		if dims := append(slices.Clone(x.shape.Dimensions[:x.shape.Rank()-1]), w.shape.Dimensions[1]); len(dims) != 2 {
			y = e.get(f.Reshape(y, dims...))
		}
		return e.biased(y, bias, activation)
	})
}

// checkQuantized reports operands that do not belong together.
func checkQuantized(q compute.Quantization, x, w, scale, zero *Node) error {
	switch {
	case x.shape.DType != dtypes.Float32 || x.shape.Rank() < 1:
		return errors.New("x must be float32 and have at least one axis")
	case w.shape.Rank() != 2 || w.shape.Dimensions[0] != x.shape.Dimensions[x.shape.Rank()-1]:
		return errors.New("the weights must have two axes, the first as long as the last of x")
	case !w.shape.DType.IsInt():
		return errors.Errorf("the weights must be integers, not %s", w.shape.DType)
	case q.BlockAxis != 1 || q.BlockSize < 1:
		return errors.Errorf("blocks of %d along axis %d; they must be along axis 1", q.BlockSize, q.BlockAxis)
	case q.Scheme == compute.QuantNF4 && zero != nil:
		return errors.New("NF4 has no zero point")
	}
	want := shapes.Make(dtypes.Float32, w.shape.Dimensions[0], (w.shape.Dimensions[1]+q.BlockSize-1)/q.BlockSize)
	if !scale.shape.Equal(want) || zero != nil && !zero.shape.Equal(want) {
		return errors.Errorf("the scale and the zero point must be a %s", want)
	}
	return nil
}

// lookUp is what the low bits of each element stand for in a table whose length
// is a power of two. It is chosen bit by bit: for so few numbers that is a handful
// of vector instructions, where a gather takes its elements one at a time.
func (e *expansion) lookUp(table []float32, x *Node) *Node {
	f := e.f
	at := e.get(f.ConvertDType(x, dtypes.Int32))
	chosen := make([]*Node, len(table))
	for i, v := range table {
		chosen[i] = e.number(dtypes.Float32, float64(v))
	}
	for bit := 1; len(chosen) > 1; bit *= 2 {
		set := e.get(f.NotEqual(e.get(f.BitwiseAnd(at, e.number(dtypes.Int32, float64(bit)))), e.number(dtypes.Int32, 0)))
		for i := range len(chosen) / 2 {
			chosen[i] = e.get(f.Where(set, chosen[2*i+1], chosen[2*i]))
		}
		chosen = chosen[:len(chosen)/2]
	}
	return chosen[0]
}

// blocks gives each element of a matrix its block's number: those are n next to
// each other in a row, of which the last may have fewer.
func (e *expansion) blocks(numbers, matrix *Node, n int) *Node {
	f, dims := e.f, matrix.shape.Dimensions
	k, count := numbers.shape.Dimensions[0], numbers.shape.Dimensions[1]
	wide := e.get(f.BroadcastInDim(numbers, shapes.Make(numbers.shape.DType, k, count, n), []int{0, 1}))
	all := e.get(f.Reshape(wide, k, count*n))
	if count*n == dims[1] {
		return all
	}
	return e.get(f.Slice(all, []int{0, 0}, []int{k, dims[1]}, nil))
}
