package acrosstest

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

const (
	letters   = 11
	positions = 5
	width     = 8
)

// gpt is a language model of one block. Its embedding is also the output's weight.
type gpt struct {
	Letters, Positions *nn.Embedding
	Before, After      *nn.LayerNorm
	Attention          *nn.MultiHeadAttention
	Up, Down           *nn.Linear
	Last               *nn.LayerNorm
}

// newGPT makes one with dropout, unless drop is 0.
func newGPT(drop float64) func(at millrace.Place) *Training {
	return func(p millrace.Place) *Training { return makeGPT(p, drop) }
}

func makeGPT(p millrace.Place, drop float64) *Training {
	with, random := at(p, 2)
	small := append(with[:len(with):len(with)], nn.Weights(nn.InitNormal(0, 0.1)))
	m := &gpt{
		Letters: nn.NewEmbedding(letters, width, small...), Positions: nn.NewEmbedding(positions, width, small...),
		Before: nn.NewLayerNorm(width, with...), After: nn.NewLayerNorm(width, with...), Last: nn.NewLayerNorm(width, with...),
		Attention: nn.NewMultiHeadAttention(width, 2, append(small, nn.Causal(), nn.DropoutOf(drop))...),
		Up:        nn.NewLinear(width, 4*width, with...), Down: nn.NewLinear(4*width, width, with...),
	}
	params := nn.Params(m)
	plain := func(name string) bool { return len(name) > 4 && name[len(name)-4:] == "bias" }
	o := optim.AdamW(params, optim.LR(0.02), optim.ClipNorm(1), optim.WeightDecay(0.1), optim.Group(plain, optim.WeightDecay(0)))
	return &Training{params, o, random, m.loss}
}

func (m *gpt) loss(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
	at := millrace.ArangeOn(in[0].Stream(), millrace.Int32, 0, positions, 1)
	x := m.Letters.Forward(c, in[0]).Add(m.Positions.Forward(c, at))
	x = x.Add(m.Attention.Forward(c, m.Before.Forward(c, x)))
	x = x.Add(m.Down.Forward(c, m.Up.Forward(c, m.After.Forward(c, x)).Relu()))
	logits := m.Last.Forward(c, x).MatMul(m.Letters.Weight.In(c).T())
	return nn.CrossEntropy(logits.Reshape(-1, letters), in[1].Reshape(-1))
}

// text makes batches of sequences in which a letter mostly follows from the one before.
func text(seed uint64, rows ...int) func(step int) Batch {
	return func(step int) Batch {
		n := rows[step%len(rows)]
		starts := Classes(seed, uint64(step), letters, n)
		var x, y []int32
		for _, v := range starts {
			for range positions {
				x = append(x, v)
				v = (3*v + 1) % letters
				y = append(y, v)
			}
		}
		return Batch{n, []Array{{Row: []int{positions}, Ints: x}, {Row: []int{positions}, Ints: y}}}
	}
}
