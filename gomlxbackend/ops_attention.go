package gomlxbackend

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// FusedScaledDotProductAttention is softmax(query·keyᵀ·scale + bias + mask)·value for each
// head. It is the products and the masked softmax that GoMLX decomposes it into: Millrace
// fuses these. A query that sees nothing gives 0.
//
// A bias is [batch, heads, queries, keys] in either layout, or [queries, keys]. A mask has
// four axes in the order of the layout, or three, [batch, queries, keys]. One of two axes is
// declined: compute says that they are queries and keys, and GoMLX that they are batch and
// keys, so its decomposed form is taken. There are no states, and no fused gradient.
func (f *Function) FusedScaledDotProductAttention(query, key, value compute.Value, layout compute.AttentionAxesLayout,
	options *compute.ScaledDotProductAttentionConfig) (output compute.Value, statesForVJP []compute.Value, err error) {
	const op = compute.OpTypeFusedScaledDotProductAttention
	o := compute.ScaledDotProductAttentionConfig{}
	if options != nil {
		o = *options
	}
	if (o.QuerySeqLen == nil) != (o.KeyValueSeqLen == nil) {
		return nil, nil, errors.Errorf("%s: the lengths of queries and of keys must both be given, or neither", op)
	}
	output, err = f.expand(op, 3, []compute.Value{query, key, value, o.Mask, o.QuerySeqLen, o.KeyValueSeqLen, o.Bias},
		func(e *expansion, in []*Node) (*Node, error) {
			a := &attention{expansion: e, heads: layout.HeadsAxis(), queries: layout.SeqAxis(), scale: o.Scale, causal: o.Causal}
			return a.of(in[0], in[1], in[2], in[3], in[4], in[5], in[6])
		})
	return output, nil, err
}

// attention is the expansion of attention: the nodes are those of GoMLX's decomposed form, in
// the order of the layout, so that a graph that has that form too, as one with gradients does,
// computes nothing twice. Where several heads of queries share one of keys, the axis of heads
// of what belongs to queries is two.
type attention struct {
	*expansion
	heads, queries int // axes of the operands
	scale          float64
	causal         bool

	dims   []int // of the scores: those of the query, but for the last, which is keys
	shared int   // heads of keys
	groups int   // heads of queries for each of these
}

func (a *attention) of(q, k, v, mask, lengths, keyLengths, bias *Node) (*Node, error) {
	if err := a.check(q, k, v); err != nil {
		return nil, err
	}
	f := a.f
	if a.scale == 0 {
		a.scale = 1 / math.Sqrt(float64(q.shape.Dimensions[3]))
	}
	batch := []int{0, a.heads}
	qs := a.split(q)
	scores := a.ordered(a.get(f.DotGeneral(qs, []int{qs.shape.Rank() - 1}, batch, k, []int{3}, batch, compute.DotGeneralConfig{})))
	scores = a.get(f.Mul(scores, a.number(q.shape.DType, a.scale)))
	if bias != nil {
		b, err := a.bias(bias)
		if err != nil {
			return nil, err
		}
		scores = a.get(f.Add(scores, b))
	}
	sees, added, err := a.mask(mask)
	if err != nil {
		return nil, err
	}
	if added != nil {
		scores = a.get(f.Add(scores, a.split(added)))
	}
	for _, more := range []*Node{a.triangle(), a.within(lengths, a.queries), a.within(keyLengths, 3)} {
		switch {
		case more == nil:
		case sees == nil:
			sees = more
		default:
			sees = a.get(f.LogicalAnd(sees, more))
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	if sees != nil {
		sees = a.split(sees)
	}
	weights := a.softmax(scores, sees)
	if a.err != nil {
		return nil, a.err
	}
	y := a.ordered(a.get(f.DotGeneral(weights, []int{weights.shape.Rank() - 1}, batch, v, []int{a.queries}, batch, compute.DotGeneralConfig{})))
	if a.groups > 1 {
		dims := slices.Clone(a.dims)
		dims[3] = v.shape.Dimensions[3]
		y = a.get(f.Reshape(y, dims...))
	}
	return y, a.err
}

// check reports operands that do not fit, and finds the sizes.
func (a *attention) check(q, k, v *Node) error {
	for _, x := range []*Node{q, k, v} {
		if err := mustFloat(x); err != nil {
			return err
		}
		if x.shape.Rank() != 4 || x.shape.DType != q.shape.DType {
			return errors.New("query, key and value must have four axes and one dtype")
		}
	}
	qd, kd, vd := q.shape.Dimensions, k.shape.Dimensions, v.shape.Dimensions
	a.dims = slices.Clone(qd)
	a.dims[3] = kd[a.queries]
	a.shared = kd[a.heads]
	switch {
	case a.shared < 1 || qd[a.heads]%a.shared != 0:
		return errors.Errorf("%d heads of queries for %d of keys: there must be as many, or a multiple", qd[a.heads], a.shared)
	case kd[0] != qd[0] || vd[0] != qd[0] || kd[3] != qd[3] || vd[a.heads] != a.shared || vd[a.queries] != a.dims[3]:
		return errors.New("batches, lengths or features differ")
	}
	a.groups = qd[a.heads] / a.shared
	return nil
}

// split is x, which has an axis of the heads of queries or 1 of them, with that axis as two
// where heads share keys.
func (a *attention) split(x *Node) *Node {
	if a.groups == 1 || a.err != nil {
		return x
	}
	dims := slices.Clone(x.shape.Dimensions)
	pair := []int{1, 1}
	if dims[a.heads] != 1 {
		pair = []int{a.shared, a.groups}
	}
	return a.get(a.f.Reshape(x, slices.Replace(dims, a.heads, a.heads+1, pair...)...))
}

// ordered is a product, whose axes of batch and heads are in front, in the order of the layout.
func (a *attention) ordered(x *Node) *Node {
	if a.heads == 1 || a.err != nil {
		return x
	}
	order := []int{0, 2, 1, 3}
	if a.groups > 1 {
		order = append(order, 4)
	}
	return a.get(a.f.Transpose(x, order...))
}

// bias is in the order of the layout, split as the scores.
func (a *attention) bias(b *Node) (*Node, error) {
	d := b.shape.Dimensions
	switch len(d) {
	case 2:
		b = a.get(a.f.Reshape(b, 1, 1, d[0], d[1]))
	case 4:
	default:
		return nil, errors.Wrapf(compute.ErrNotImplemented, "a bias of %d axes", len(d))
	}
	if a.heads == 2 {
		b = a.get(a.f.Transpose(b, 0, 2, 1, 3))
	}
	if err := a.fits("bias", b); err != nil {
		return nil, err
	}
	return a.split(b), a.err
}

// mask is one of bools or one that is added, with four axes.
func (a *attention) mask(m *Node) (sees, added *Node, err error) {
	if m == nil {
		return nil, nil, nil
	}
	d := m.shape.Dimensions
	switch {
	case len(d) != 3 && len(d) != 4:
		return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "a mask of %d axes", len(d))
	case m.shape.DType != dtypes.Bool && !m.shape.DType.IsFloat():
		return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "a mask of %s", m.shape.DType)
	case len(d) == 3:
		m = a.get(a.f.Reshape(m, slices.Insert(slices.Clone(d), a.heads, 1)...))
	}
	if err := a.fits("mask", m); err != nil {
		return nil, nil, err
	}
	if m.shape.DType == dtypes.Bool {
		return m, nil, nil
	}
	return nil, m, nil
}

// fits reports what cannot be broadcast to the scores.
func (a *attention) fits(what string, x *Node) error {
	if a.err != nil {
		return a.err
	}
	for i, d := range x.shape.Dimensions {
		if d != 1 && d != a.dims[i] {
			return errors.Errorf("a %s %v for scores %v", what, x.shape.Dimensions, a.dims)
		}
	}
	return nil
}

// triangle says that a query sees the keys up to its own position.
func (a *attention) triangle() *Node {
	if !a.causal {
		return nil
	}
	n, m := a.dims[a.queries], a.dims[3]
	square := shapes.Make(a.f.builder.backend.sizeDType(), n, m)
	below := a.get(a.f.LessOrEqual(a.get(a.f.Iota(square, 1)), a.get(a.f.Iota(square, 0))))
	dims := []int{1, 1, 1, m}
	dims[a.queries] = n
	return a.get(a.f.Reshape(below, dims...))
}

// within says which positions along an axis are below the lengths, one for each of the batch.
func (a *attention) within(lengths *Node, axis int) *Node {
	if lengths == nil || a.err != nil {
		return nil
	}
	if !lengths.shape.DType.IsInt() || lengths.shape.Rank() != 1 || lengths.shape.Dimensions[0] != a.dims[0] {
		a.err = errors.Errorf("lengths %s: they must be integers, one for each of %d", lengths.shape, a.dims[0])
		return nil
	}
	dims := []int{1, 1, 1, 1}
	dims[axis] = a.dims[axis]
	at := a.get(a.f.Reshape(a.get(a.f.Iota(shapes.Make(dtypes.Int32, a.dims[axis]), 0)), dims...))
	n := a.get(a.f.Reshape(a.get(a.f.ConvertDType(lengths, dtypes.Int32)), a.dims[0], 1, 1, 1))
	return a.get(a.f.LessThan(at, n))
}

// softmax along the keys, of those that are seen: all where sees is nil.
func (a *attention) softmax(scores, sees *Node) *Node {
	f, dt := a.f, scores.shape.DType
	last := scores.shape.Rank() - 1
	keys := []int{last}
	if sees == nil || a.err != nil {
		return a.get(f.FusedSoftmax(scores, last))
	}
	zero := a.number(dt, 0)
	highest := a.kept(a.get(f.ReduceMax(a.seen(sees, scores, a.number(dt, math.Inf(-1))), keys...)), scores, keys)
	exp := a.get(f.Exp(a.seen(sees, a.get(f.Sub(scores, highest)), zero)))
	exp = a.seen(sees, exp, zero)
	sum := a.kept(a.get(f.ReduceSum(exp, keys...)), scores, keys)
	return a.seen(sees, a.get(f.Div(exp, sum)), zero)
}

// seen is x where the mask says so, and a number elsewhere.
func (a *attention) seen(sees, x, other *Node) *Node {
	if a.err != nil {
		return broken
	}
	if v, err := a.f.Where(sees, x, other); err == nil {
		return v.(*Node)
	}
	// Older versions of compute want a condition of x's shape.
	axes := make([]int, x.shape.Rank())
	for i := range axes {
		axes[i] = i
	}
	all := a.get(a.f.BroadcastInDim(sees, withDType(x.shape, dtypes.Bool), axes))
	return a.get(a.f.Where(all, x, other))
}
