package nn

import (
	"math"

	"github.com/millrace-go/millrace"
)

// Causal hides from each position all later positions.
func Causal() Option { return Option{kCausal, func(o *settings) {}} }

// Rotary rotates queries and keys by angles that depend on their positions: see [RotaryEmbedding].
func Rotary(base float64) Option { return Option{kRotary, func(o *settings) { o.base = base }} }

// MultiHeadAttention computes softmax(q·kᵀ/√d)·v for several heads (Vaswani and others, 2017), with
// linear maps before and after; d is dim/Heads. It has the parameters of PyTorch's
// nn.MultiheadAttention with batch_first.
type MultiHeadAttention struct {
	InProjWeight *Param // (3·dim, dim): for queries, keys and values, in this order
	InProjBias   *Param // (3·dim), or nil
	OutProj      *Linear

	Heads   int
	Causal  bool
	Dropout float64 // probability of a weight to be dropped in training
	Rotary  *RotaryEmbedding
}

// NewMultiHeadAttention makes attention for dim features in heads heads; heads must divide dim,
// else results carry [millrace.ErrShape]. It takes [NoBias], [Causal], [Rotary], [DropoutOf],
// [Weights] and [Biases]. The input's weights start as [InitXavierUniform], those of the output as
// in [Linear], and biases as 0.
func NewMultiHeadAttention(dim, heads int, opts ...Option) *MultiHeadAttention {
	const name = "attention"
	o := settled(name, opts, kNoBias|kCausal|kRotary|kDropout|kWeights|kBiases)
	l := &MultiHeadAttention{Heads: heads, Causal: o.has(kCausal), Dropout: o.p}
	if heads < 1 || dim%heads != 0 {
		o.fault(name, shapeErr("%d features cannot be split into %d heads", dim, heads))
		heads = 1
	}
	if o.has(kRotary) {
		l.Rotary = newRotary(o, dim/heads, o.base)
	}
	l.InProjWeight = o.draw(o.weights, InitXavierUniform(1), 3*dim, dim)
	l.OutProj = &Linear{Weight: o.draw(o.weights, initFan(dim), dim, dim)}
	if !o.has(kNoBias) {
		l.InProjBias = o.draw(o.biases, InitConstant(0), 3*dim)
		l.OutProj.Bias = o.draw(o.biases, InitConstant(0), dim)
	}
	return l
}

// Hide says which keys are hidden from which queries, besides those that [Causal] hides. A query
// may see no key at all, as with Causal and padding at the front. Its weighted mean is then 0, so
// its result is the output's bias, and it has no gradient; PyTorch's module gives NaN. The
// weights are those of [millrace.Tensor.MaskedSoftmax].
type Hide struct {
	// Mask is Bool, true where a query (second last dimension) does not see a key (last dimension).
	// Or it is a float tensor that is added to the scores. It broadcasts to (batch, heads, queries,
	// keys).
	Mask *millrace.Tensor
	// Keys is Bool, of shape (batch, keys), and true where a key is padding.
	Keys *millrace.Tensor
}

// Forward is self-attention: [MultiHeadAttention.Attend] with x, of shape (batch, positions, dim),
// as queries, keys and values. Dtypes and errors are those of Attend.
func (l *MultiHeadAttention) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return l.Attend(c, x, x, x, Hide{})
}

// Attend returns for each query, of shape (batch, queries, dim), the weighted mean of values, after
// the output map. Keys and values have the shape (batch, keys, dim). Other shapes are
// [millrace.ErrShape], and so are masks that do not fit the scores. The dtype is c's compute dtype.
// If c has none, it is that of the three tensors, and must be that of the weights, else
// [millrace.ErrDType].
//
// If all three tensors or the last two are one tensor, their maps are one product.
func (l *MultiHeadAttention) Attend(c *Ctx, queries, keys, values *millrace.Tensor, hide Hide) *millrace.Tensor {
	const name = "attention"
	w := l.InProjWeight.In(c)
	dim := w.Dim(1)
	for _, x := range []*millrace.Tensor{queries, keys, values} {
		if x.Rank() != 3 || x.Dim(2) != dim || x.Dim(0) != queries.Dim(0) || l.Heads < 1 {
			return fail(name, shapeErr("queries %v, keys %v and values %v do not fit weights for %d features", queries.Shape(), keys.Shape(), values.Shape(), dim), queries, keys, values, w)
		}
	}
	if keys.Dim(1) != values.Dim(1) {
		return fail(name, shapeErr("keys %v and values %v have different numbers of positions", keys.Shape(), values.Shape()), queries, keys, values)
	}
	q, k, v := l.project(c, queries, keys, values)
	if l.Rotary != nil {
		turned := l.Rotary.each(c, 0, q, k)
		q, k = turned[0], turned[1]
	}
	scores := q.MatMul(k.Permute(0, 1, 3, 2)).MulScalar(1 / math.Sqrt(float64(dim/l.Heads)))
	scores, bad := l.hidden(c, scores, hide)
	if bad != nil {
		return bad
	}
	weights := dropout(name, c, l.Dropout, scores.MaskedSoftmax(nil, -1))
	y := weights.MatMul(v).Permute(0, 2, 1, 3).Reshape(queries.Dim(0), queries.Dim(1), dim)
	return l.OutProj.Forward(c, y)
}

// hidden returns the scores with -inf at hidden positions, or bad, which carries an error.
func (l *MultiHeadAttention) hidden(c *Ctx, scores *millrace.Tensor, hide Hide) (out, bad *millrace.Tensor) {
	never := math.Inf(-1)
	if l.Causal {
		at := c.place(scores)
		rows := millrace.ArangeOn(at, millrace.Int32, 0, float64(scores.Dim(2)), 1).Unsqueeze(-1)
		columns := millrace.ArangeOn(at, millrace.Int32, 0, float64(scores.Dim(3)), 1)
		scores = scores.MaskedFill(columns.Gt(rows), never)
	}
	switch m := hide.Mask; {
	case m == nil:
	case m.DType() == millrace.Bool:
		scores = scores.MaskedFill(m, never)
	case !m.DType().IsFloat():
		return nil, fail("attention", dtypeErr("a mask cannot have dtype %v, only Bool or a float", m.DType()), scores, m)
	default:
		scores = scores.Add(as(m, scores.DType()))
	}
	if k := hide.Keys; k != nil {
		if k.Rank() != 2 || k.Dim(0) != scores.Dim(0) || k.Dim(1) != scores.Dim(3) {
			return nil, fail("attention", shapeErr("padding %v does not fit scores %v", k.Shape(), scores.Shape()), scores, k)
		}
		scores = scores.MaskedFill(k.Reshape(k.Dim(0), 1, 1, k.Dim(1)), never)
	}
	return scores, nil
}

// project returns queries, keys and values of shape (batch, heads, positions, features). Neighbours
// that are the same tensor share one product.
func (l *MultiHeadAttention) project(c *Ctx, queries, keys, values *millrace.Tensor) (q, k, v *millrace.Tensor) {
	from := []*millrace.Tensor{queries, keys, values}
	var out []*millrace.Tensor
	for i := 0; i < 3; {
		n := 1
		for i+n < 3 && from[i+n] == from[i] {
			n++
		}
		out = append(out, l.part(c, from[i], i, n)...)
		i += n
	}
	return out[0], out[1], out[2]
}

// part applies n of the three parts of the input weights to x.
func (l *MultiHeadAttention) part(c *Ctx, x *millrace.Tensor, first, n int) []*millrace.Tensor {
	x = c.Cast(x)
	w, b := l.InProjWeight.In(c), (*millrace.Tensor)(nil)
	if l.InProjBias != nil {
		b = l.InProjBias.In(c)
	}
	dim := x.Dim(2)
	if n < 3 {
		rows := millrace.R(first*dim, (first+n)*dim)
		w = w.Slice(rows)
		defer drop(w)
		if b != nil {
			b = b.Slice(rows)
			defer drop(b)
		}
	}
	y := x.DotGeneral(w, nil, nil, []int{2}, []int{1})
	if b != nil {
		y = y.Add(b)
	}
	apart := y.Reshape(x.Dim(0), x.Dim(1), n, l.Heads, dim/l.Heads)
	var out []*millrace.Tensor
	for i := range n {
		out = append(out, apart.Slice(millrace.All, millrace.All, millrace.At(i)).Permute(0, 2, 1, 3))
	}
	return out
}
