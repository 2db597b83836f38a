package models

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// MakeMore predicts the next character of a name from those before it: a perceptron over
// embeddings (Bengio and others, 2003), in the form that BurTorch's authors time, with a
// tanh behind each of the two layers.
type MakeMore struct {
	Embed  *nn.Embedding
	Hidden *nn.Linear
	Out    *nn.Linear
}

// NewMakeMore makes one for symbols of some kinds, which sees block of them at a time.
func NewMakeMore(symbols, block, embed, hidden int, opts ...nn.Option) *MakeMore {
	return &MakeMore{
		Embed:  nn.NewEmbedding(symbols, embed, opts...),
		Hidden: nn.NewLinear(block*embed, hidden, opts...),
		Out:    nn.NewLinear(hidden, symbols, opts...),
	}
}

// Forward is the logits, (n, symbols), of what follows each of n contexts, (n, block).
func (m *MakeMore) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	e := m.Embed.Forward(c, x)
	h := m.Hidden.Forward(c, e.Reshape(x.Dim(0), -1)).Tanh()
	return m.Out.Forward(c, h).Tanh()
}
