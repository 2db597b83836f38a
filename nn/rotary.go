package nn

import (
	"math"

	"github.com/millrace-go/millrace"
)

// RotaryEmbedding turns pairs of features by angles that grow with the position (Su and
// others, 2021), so that products of queries and keys know how far apart they are. The
// pairs are of the first half's features and the second half's, as in LLaMA and GPT-NeoX.
type RotaryEmbedding struct {
	turns *millrace.Tensor // (dim/2): radians from one position to the next
	dim   int
}

// NewRotaryEmbedding makes one for heads of dim features, an even number: pair i of them
// turns by base^(-2i/dim) radians from one position to the next. The base is usually
// 10,000.
func NewRotaryEmbedding(dim int, base float64, opts ...Option) *RotaryEmbedding {
	return newRotary(settled("rotary", opts, 0), dim, base)
}

func newRotary(o *settings, dim int, base float64) *RotaryEmbedding {
	l := &RotaryEmbedding{dim: dim}
	if dim < 0 || dim%2 != 0 || !(base > 0) {
		o.fault("rotary", shapeErr("%d features and base %v: an even number and a positive one", dim, base))
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

// Forward turns x, of shape (…, positions, dim).
func (l *RotaryEmbedding) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return l.At(c, x, 0)
}

// At is Forward of positions that begin at another one than 0.
func (l *RotaryEmbedding) At(c *Ctx, x *millrace.Tensor, first int) *millrace.Tensor {
	if x.Rank() < 2 || x.Dim(-1) != l.dim {
		return fail("rotary", shapeErr("%v, and heads of %d features", x.Shape(), l.dim), x, l.turns)
	}
	dt, half := x.DType(), l.dim/2
	x = wide(x)
	at := millrace.ArangeOn(c.place(x), millrace.Float32, float64(first), float64(first+x.Dim(-2)), 1)
	angle := at.Unsqueeze(-1).Mul(l.turns)
	cos, sin := as(angle.Cos(), x.DType()), as(angle.Sin(), x.DType())
	a, b := last(x, 0, half), last(x, half, l.dim)
	return as(millrace.Concat(-1, a.Mul(cos).Sub(b.Mul(sin)), b.Mul(cos).Add(a.Mul(sin))), dt)
}

// last is a range of the last dimension.
func last(x *millrace.Tensor, from, to int) *millrace.Tensor {
	rs := make([]millrace.Range, x.Rank())
	for i := range rs {
		rs[i] = millrace.All
	}
	rs[len(rs)-1] = millrace.R(from, to)
	return x.Slice(rs...)
}
