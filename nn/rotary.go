package nn

import (
	"math"

	"github.com/millrace-go/millrace"
)

// RotaryEmbedding rotates pairs of features by angles that grow with the position (Su and others,
// 2021). The product of a query and a key then depends on their distance. A pair consists of a
// feature of the first half and one of the second half, as in LLaMA and GPT-NeoX.
type RotaryEmbedding struct {
	turns *millrace.Tensor // (dim/2): radians from one position to the next
	dim   int
}

// NewRotaryEmbedding makes a RotaryEmbedding for heads of dim features, an even number. Pair i
// turns by base^(-2i/dim) radians from one position to the next. The usual base is 10,000.
func NewRotaryEmbedding(dim int, base float64, opts ...Option) *RotaryEmbedding {
	return newRotary(settled("rotary", opts, 0), dim, base)
}

func newRotary(o *settings, dim int, base float64) *RotaryEmbedding {
	l := &RotaryEmbedding{dim: dim}
	if dim < 0 || dim%2 != 0 || !(base > 0) {
		o.fault("rotary", shapeErr("a rotation needs an even number of features and a positive base, not %d and %v", dim, base))
	}
	if l.turns = o.bad; o.bad != nil {
		return l
	}
	turns := make([]float32, dim/2)
	for i := range turns {
		turns[i] = float32(math.Pow(base, -2*float64(i)/float64(dim)))
	}
	l.turns = millrace.FromSliceOn(o.on, turns)
	return l
}

// Forward rotates x, floats of shape (…, positions, dim); another dim is [millrace.ErrShape],
// another dtype [millrace.ErrDType]. The result has x's shape and dtype; 16-bit floats are rotated
// in float32.
func (l *RotaryEmbedding) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return l.At(c, x, 0)
}

// At is Forward for positions that begin at first. Shapes, dtypes and errors are the same.
func (l *RotaryEmbedding) At(c *Ctx, x *millrace.Tensor, first int) *millrace.Tensor {
	return l.each(c, first, x)[0]
}

// each rotates several tensors; tensors of one length share the sines.
func (l *RotaryEmbedding) each(c *Ctx, first int, xs ...*millrace.Tensor) []*millrace.Tensor {
	var cos, sin *millrace.Tensor
	n := -1
	out := make([]*millrace.Tensor, len(xs))
	for i, x := range xs {
		if err := l.fits(x); err != nil {
			out[i] = fail("rotary", err, x, l.turns)
			continue
		}
		if x.Dim(-2) != n {
			n = x.Dim(-2)
			cos, sin = l.angles(c, x, first, n)
		}
		out[i] = l.turn(x, cos, sin)
	}
	return out
}

// fits returns an error for a tensor that cannot be rotated.
func (l *RotaryEmbedding) fits(x *millrace.Tensor) error {
	switch {
	case x.Rank() < 2 || x.Dim(-1) != l.dim:
		return shapeErr("%v does not fit heads of %d features", x.Shape(), l.dim)
	case !x.DType().IsFloat():
		return dtypeErr("%v is not a float dtype; use Cast", x.DType())
	}
	return nil
}

// angles returns the cosines, of shape (n, 1, dim/2), and the sines, of shape (n, 2, dim/2). The
// sines for the first element of a pair are negative.
func (l *RotaryEmbedding) angles(c *Ctx, x *millrace.Tensor, first, n int) (cos, sin *millrace.Tensor) {
	place := c.place(x)
	at := millrace.ArangeOn(place, millrace.Float32, float64(first), float64(first+n), 1)
	angle := at.Reshape(-1, 1, 1).Mul(l.turns)
	sign := millrace.ArangeOn(place, millrace.Float32, -1, 2, 2).Reshape(2, 1)
	return angle.Cos(), angle.Sin().Mul(sign)
}

// turn reshapes x to (…, n, 2, dim/2) and computes x·cos + flip(x)·sin, where flip swaps the
// elements of each pair.
func (l *RotaryEmbedding) turn(x, cos, sin *millrace.Tensor) *millrace.Tensor {
	dt, shape := x.DType(), x.Shape()
	x = wide(x)
	cos, sin = as(cos, x.DType()), as(sin, x.DType())
	pairs := x.Reshape(append(shape[:len(shape)-1:len(shape)-1], 2, l.dim/2)...)
	return as(pairs.Mul(cos).Add(pairs.Flip(-2).Mul(sin)).Reshape(shape...), dt)
}

// last slices the last dimension. A tensor that carries an error has no dimension: last returns it.
func last(x *millrace.Tensor, from, to int) *millrace.Tensor {
	if x.Rank() == 0 {
		return x
	}
	rs := make([]millrace.Range, x.Rank())
	for i := range rs {
		rs[i] = millrace.All
	}
	rs[len(rs)-1] = millrace.R(from, to)
	return x.Slice(rs...)
}
