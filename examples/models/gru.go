package models

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// GRUClassifier tells from the last state of a GRU which class a sequence of symbols is of.
type GRUClassifier struct {
	Embed *nn.Embedding
	GRU   *nn.GRU
	Out   *nn.Linear
	// ByHand computes the same step by step in tensor ops, instead of by nn.GRU.
	ByHand bool
	hidden int
}

// NewGRUClassifier makes one.
func NewGRUClassifier(symbols, embed, hidden, classes int, opts ...nn.Option) *GRUClassifier {
	return &GRUClassifier{
		Embed:  nn.NewEmbedding(symbols, embed, opts...),
		GRU:    nn.NewGRU(embed, hidden, append([]nn.Option{nn.BatchFirst()}, opts...)...),
		Out:    nn.NewLinear(hidden, classes, opts...),
		hidden: hidden,
	}
}

// Forward is the logits, (n, classes), of n sequences, (n, steps).
func (m *GRUClassifier) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	e := m.Embed.Forward(c, x)
	if m.ByHand {
		return m.Out.Forward(c, m.byHand(c, e))
	}
	_, end := m.GRU.Run(c, e, nil)
	return m.Out.Forward(c, end.Squeeze(0))
}

// byHand is the last state after e, (n, steps, embed), in tensor ops and a Go loop.
func (m *GRUClassifier) byHand(c *nn.Ctx, e *millrace.Tensor) *millrace.Tensor {
	ps := m.GRU.State()
	wi, wh, bi, bh := ps[0].In(c), ps[1].In(c), ps[2].In(c), ps[3].In(c)
	n := m.hidden
	gates := e.MatMul(wi.T()).Add(bi) // of all steps at once
	h := millrace.ZerosOn(e.Stream(), gates.DType(), e.Dim(0), n)
	part := func(g *millrace.Tensor, i int) *millrace.Tensor {
		return g.Slice(millrace.All, millrace.R(i*n, (i+1)*n))
	}
	for t := range e.Dim(1) {
		in := gates.Slice(millrace.All, millrace.At(t))
		state := h.MatMul(wh.T()).Add(bh)
		reset := part(in, 0).Add(part(state, 0)).Sigmoid()
		keep := part(in, 1).Add(part(state, 1)).Sigmoid()
		fresh := part(in, 2).Add(reset.Mul(part(state, 2))).Tanh()
		h = keep.ScalarSub(1).Mul(fresh).Add(keep.Mul(h))
	}
	return h
}
