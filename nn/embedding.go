package nn

import "github.com/millrace-go/millrace"

// PaddingIndex is the index of an [Embedding]'s row for padding, which is not learned.
func PaddingIndex(i int) Option { return Option{kPadding, func(o *settings) { o.padding = i }} }

// Embedding looks up rows of a table (PyTorch's nn.Embedding).
type Embedding struct {
	Weight *Param // (n, dim)

	padded  bool
	padding int
}

// NewEmbedding makes a table of n rows of dim numbers. It takes [Weights] and [PaddingIndex]; rows
// start normal with a deviation of 1, the padding row as 0.
func NewEmbedding(n, dim int, opts ...Option) *Embedding {
	const name = "embedding"
	o := settled(name, opts, kWeights|kPadding)
	l := &Embedding{padded: o.has(kPadding), padding: o.padding}
	if l.padded && (o.padding < 0 || o.padding >= n) {
		o.fault(name, shapeErr("padding index %d does not exist in %d rows", o.padding, n))
	}
	l.Weight = o.draw(o.weights, InitNormal(0, 1), n, dim)
	if l.padded && o.bad == nil {
		all := l.Weight.t
		l.Weight = NewParam(all.AssignScalar(0, millrace.At(o.padding)))
		drop(all)
	}
	return l
}

// Forward returns Weight[indices], of shape (…, dim), for integer indices of shape (…). The dtype
// is c's compute dtype or, without one, Weight's. Indices that are no integers are
// [millrace.ErrDType]; an index out of range is [millrace.ErrIndex]. The padding row gets no
// gradient.
func (l *Embedding) Forward(c *Ctx, indices *millrace.Tensor) *millrace.Tensor {
	y := c.Cast(l.Weight.master(c).Take(indices, 0))
	if l.padded && c.follows() {
		y = millrace.Where(indices.EqScalar(float64(l.padding)).Unsqueeze(-1), detached(y), y)
	}
	return y
}
