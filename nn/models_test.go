package nn_test

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// mlp and the types below are the models of testdata/models.safetensors, as a program writes them.

type mlp struct{ Layers []*nn.Linear }

func newMLP(opts ...nn.Option) *mlp {
	return &mlp{[]*nn.Linear{nn.NewLinear(12, 16, opts...), nn.NewLinear(16, 16, opts...), nn.NewLinear(16, 5, opts...)}}
}

func (m *mlp) Forward(c *nn.Ctx, x *tensor) *tensor {
	for i, l := range m.Layers {
		if x = l.Forward(c, x); i < len(m.Layers)-1 {
			x = x.Relu()
		}
	}
	return x
}

type block struct {
	Conv1      *nn.Conv
	BN1        *nn.BatchNorm `nn:"bn1"`
	Conv2      *nn.Conv
	BN2        *nn.BatchNorm `nn:"bn2"`
	Downsample nn.Sequential
}

func newBlock(n, m, stride int) *block {
	b := &block{nn.NewConv2d(n, m, 3, nn.Stride(stride), nn.Pad(1), nn.NoBias()), nn.NewBatchNorm2d(m),
		nn.NewConv2d(m, m, 3, nn.Pad(1), nn.NoBias()), nn.NewBatchNorm2d(m), nil}
	if stride > 1 {
		b.Downsample = nn.NewSequential(nn.NewConv2d(n, m, 1, nn.Stride(stride), nn.NoBias()), nn.NewBatchNorm2d(m))
	}
	return b
}

func (b *block) Forward(c *nn.Ctx, x *tensor) *tensor {
	y := b.BN2.Forward(c, b.Conv2.Forward(c, b.BN1.Forward(c, b.Conv1.Forward(c, x)).Relu()))
	return y.Add(b.Downsample.Forward(c, x)).Relu()
}

type cnn struct {
	Conv1  *nn.Conv
	BN1    *nn.BatchNorm `nn:"bn1"`
	Blocks nn.Sequential
	FC     *nn.Linear
}

func newCNN() *cnn {
	return &cnn{nn.NewConv2d(3, 4, 3, nn.Pad(1), nn.NoBias()), nn.NewBatchNorm2d(4), nn.NewSequential(newBlock(4, 4, 1), newBlock(4, 6, 2)),
		nn.NewLinear(6, 5)}
}

func (m *cnn) Forward(c *nn.Ctx, x *tensor) *tensor {
	return m.FC.Forward(c, m.Blocks.Forward(c, m.BN1.Forward(c, m.Conv1.Forward(c, x)).Relu()).Mean(2, 3))
}

type reader struct {
	Embed *nn.Embedding
	GRU   *nn.GRU
	Out   *nn.Linear
}

func newReader() *reader {
	return &reader{nn.NewEmbedding(20, 6), nn.NewGRU(6, 8, nn.BatchFirst()), nn.NewLinear(8, 5)}
}

func (m *reader) Forward(c *nn.Ctx, x *tensor) *tensor {
	return m.Out.Forward(c, m.GRU.Forward(c, m.Embed.Forward(c, x)).Slice(millrace.All, millrace.At(-1)))
}

type gptBlock struct {
	LN1  *nn.LayerNorm `nn:"ln_1"`
	Attn *nn.MultiHeadAttention
	LN2  *nn.LayerNorm `nn:"ln_2"`
	FC   *nn.Linear
	Proj *nn.Linear
}

func (b *gptBlock) Forward(c *nn.Ctx, x *tensor) *tensor {
	x = x.Add(b.Attn.Forward(c, b.LN1.Forward(c, x)))
	return x.Add(b.Proj.Forward(c, b.FC.Forward(c, b.LN2.Forward(c, x)).Gelu()))
}

type gpt struct {
	WTE *nn.Embedding
	WPE *nn.Embedding
	H   []*gptBlock
	LNF *nn.LayerNorm `nn:"ln_f"`
}

func newGPT(opts ...nn.Option) *gpt {
	const n, heads = 12, 3
	m := &gpt{WTE: nn.NewEmbedding(11, n, opts...), WPE: nn.NewEmbedding(7, n, opts...), LNF: nn.NewLayerNorm(n, opts...)}
	for range 2 {
		m.H = append(m.H, &gptBlock{nn.NewLayerNorm(n, opts...), nn.NewMultiHeadAttention(n, heads, append(opts, nn.Causal())...),
			nn.NewLayerNorm(n, opts...), nn.NewLinear(n, 4*n, opts...), nn.NewLinear(4*n, n, opts...)})
	}
	return m
}

func (m *gpt) Forward(c *nn.Ctx, x *tensor) *tensor {
	at := millrace.ArangeOn(x.Stream(), x.DType(), 0, float64(x.Dim(1)), 1)
	y := m.WTE.Forward(c, x).Add(m.WPE.Forward(c, at))
	for _, b := range m.H {
		y = b.Forward(c, y)
	}
	// The table of tokens also gives the logits: both uses add to one gradient.
	return m.LNF.Forward(c, y).DotGeneral(m.WTE.Weight.In(c), nil, nil, []int{2}, []int{1})
}

var models = map[string]func() nn.Module{
	"mlp": func() nn.Module { return newMLP() }, "cnn": func() nn.Module { return newCNN() },
	"gru": func() nn.Module { return newReader() }, "gpt": func() nn.Module { return newGPT() },
}

// TestModels compares the loss, the logits, all weights' gradients and the running statistics of
// whole models with PyTorch's.
func TestModels(t *testing.T) {
	r := readReference(t, "models")
	if got := r.cases(); len(got) != len(models) {
		t.Errorf("the file has %v", got)
	}
	for name, make := range models {
		t.Run(name, func(t *testing.T) {
			m := make()
			r.check(t, name, m, true, func(c *nn.Ctx, in []*tensor) []*tensor {
				logits := m.Forward(c, in[0])
				return []*tensor{nn.CrossEntropy(logits, in[1]), logits}
			})
		})
	}
}
