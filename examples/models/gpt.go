package models

import (
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// GPTConfig says how large a GPT is, and in which of the usual forms.
type GPTConfig struct {
	Symbols, Context     int
	Layers, Heads, Width int
	Dropout              float64
	// Lecture is the form of Karpathy's lecture, which BurTorch's authors time: biases, ReLU,
	// an output layer of its own, and no norm before that. The other form is nanoGPT's.
	Lecture bool
}

// SmallGPT is BurTorch's: 46,289 parameters with 65 symbols.
func SmallGPT(symbols int) GPTConfig {
	return GPTConfig{Symbols: symbols, Context: 8, Layers: 6, Heads: 6, Width: 24, Lecture: true}
}

// NanoGPT is nanoGPT's model of characters: 10.7 million parameters with 65 symbols.
func NanoGPT(symbols int) GPTConfig {
	return GPTConfig{Symbols: symbols, Context: 256, Layers: 6, Heads: 6, Width: 384, Dropout: 0.2}
}

// GPT predicts each next symbol of a text from those before it.
type GPT struct {
	Tokens    *nn.Embedding
	Positions *nn.Embedding
	Drop      *nn.Dropout
	Blocks    []*Block
	Norm      *nn.LayerNorm // nil in the form of the lecture
	Out       *nn.Linear
}

// Block is attention and a perceptron, each beside a path that leaves the input as it is.
type Block struct {
	Norm1  *nn.LayerNorm
	QKV    *nn.Linear
	Proj   *nn.Linear
	Norm2  *nn.LayerNorm
	Up     *nn.Linear
	Down   *nn.Linear
	Drop   *nn.Dropout
	Heads  int
	smooth bool // GELU in place of ReLU
}

// NewGPT makes one with nanoGPT's first values, or those of the lecture.
func NewGPT(cfg GPTConfig, opts ...nn.Option) *GPT {
	normal := func(std float64) []nn.Option {
		if cfg.Lecture {
			return opts
		}
		return append([]nn.Option{nn.Weights(nn.InitNormal(0, std))}, opts...)
	}
	noBias := func(opts []nn.Option) []nn.Option { return append([]nn.Option{nn.NoBias()}, opts...) }
	maybe := func(opts []nn.Option) []nn.Option {
		if cfg.Lecture {
			return opts
		}
		return noBias(opts)
	}
	n := cfg.Width
	inner := normal(0.02)
	ends := normal(0.02 / math.Sqrt(2*float64(cfg.Layers)))
	m := &GPT{
		Tokens:    nn.NewEmbedding(cfg.Symbols, n, inner...),
		Positions: nn.NewEmbedding(cfg.Context, n, inner...),
		Drop:      nn.NewDropout(cfg.Dropout),
	}
	for range cfg.Layers {
		m.Blocks = append(m.Blocks, &Block{
			Norm1: nn.NewLayerNorm(n, maybe(opts)...),
			QKV:   nn.NewLinear(n, 3*n, noBias(inner)...),
			Proj:  nn.NewLinear(n, n, maybe(ends)...),
			Norm2: nn.NewLayerNorm(n, maybe(opts)...),
			Up:    nn.NewLinear(n, 4*n, maybe(inner)...),
			Down:  nn.NewLinear(4*n, n, maybe(ends)...),
			Drop:  m.Drop, Heads: cfg.Heads, smooth: !cfg.Lecture,
		})
	}
	m.Out = nn.NewLinear(n, cfg.Symbols, maybe(inner)...)
	if !cfg.Lecture {
		m.Norm = nn.NewLayerNorm(n, noBias(opts)...)
		m.Out.Weight = m.Tokens.Weight // tied: one weight, one update
	}
	return m
}

// Forward is the logits (b, t, symbols) of what follows each place of b texts, (b, t), of
// at most as many symbols as the context is long.
func (m *GPT) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	places := millrace.ArangeOn(x.Stream(), millrace.Int32, 0, float64(x.Dim(1)), 1)
	h := m.Drop.Forward(c, m.Tokens.Forward(c, x).Add(m.Positions.Forward(c, places)))
	for _, b := range m.Blocks {
		h = b.Forward(c, h)
	}
	if m.Norm != nil {
		h = m.Norm.Forward(c, h)
	}
	return m.Out.Forward(c, h)
}

// Forward is x, (b, t, width), and what the block adds to it.
func (b *Block) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	x = x.Add(b.Drop.Forward(c, b.Proj.Forward(c, b.attend(c, b.Norm1.Forward(c, x)))))
	h := b.Up.Forward(c, b.Norm2.Forward(c, x))
	if b.smooth {
		h = h.Gelu()
	} else {
		h = h.Relu()
	}
	return x.Add(b.Drop.Forward(c, b.Down.Forward(c, h)))
}

// attend has each place look at those before it, in each head by itself.
func (b *Block) attend(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	batch, t, n := x.Dim(0), x.Dim(1), x.Dim(2)
	qkv := b.QKV.Forward(c, x).Reshape(batch, t, 3, b.Heads, n/b.Heads).Permute(2, 0, 3, 1, 4)
	q, k, v := qkv.Slice(millrace.At(0)), qkv.Slice(millrace.At(1)), qkv.Slice(millrace.At(2))
	scores := q.MatMul(k.Permute(0, 1, 3, 2)).MulScalar(1 / math.Sqrt(float64(n/b.Heads)))
	place := millrace.ArangeOn(x.Stream(), millrace.Int32, 0, float64(t), 1)
	later := place.Gt(place.Unsqueeze(1)) // (t, t)
	weights := scores.MaskedFill(later, math.Inf(-1)).Softmax(-1)
	out := b.Drop.Forward(c, weights).MatMul(v)
	return out.Permute(0, 2, 1, 3).Reshape(batch, t, n)
}
