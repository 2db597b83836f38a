package nn_test

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

type tensor = millrace.Tensor

// of makes a program of a module.
func of(m nn.Module) (any, program) {
	return m, func(c *nn.Ctx, in []*tensor) []*tensor { return []*tensor{m.Forward(c, in[0])} }
}

// attending makes a program of attention with a mask as the fourth input.
func attending(m *nn.MultiHeadAttention, hide func(x *tensor) nn.Hide) (any, program) {
	return m, func(c *nn.Ctx, in []*tensor) []*tensor {
		return []*tensor{m.Attend(c, in[0], in[1], in[2], hide(in[3]))}
	}
}

// layerCases make the modules of testdata/layers.safetensors. A case's modules for training and for
// evaluation are the same.
var layerCases = map[string]func() (any, program){
	"linear":        func() (any, program) { return of(nn.NewLinear(5, 4)) },
	"linear_nobias": func() (any, program) { return of(nn.NewLinear(5, 4, nn.NoBias())) },
	"conv1d": func() (any, program) {
		return of(nn.NewConv1d(4, 6, 3, nn.Stride(2), nn.Pad(1), nn.Dilation(2), nn.Groups(2)))
	},
	"conv2d": func() (any, program) {
		return of(nn.NewConv2d(3, 4, 0, nn.Kernel(3, 2), nn.Stride(2, 1), nn.Pad(1, 0)))
	},
	"conv2d_groups":   func() (any, program) { return of(nn.NewConv2d(4, 4, 3, nn.Dilation(2), nn.Groups(4), nn.NoBias())) },
	"convtranspose1d": func() (any, program) { return of(nn.NewConvTranspose1d(3, 2, 4, nn.Stride(3))) },
	"convtranspose2d": func() (any, program) {
		return of(nn.NewConvTranspose2d(4, 6, 3, nn.Stride(2), nn.Pad(1), nn.OutputPad(1), nn.Groups(2)))
	},
	"batchnorm1d":        func() (any, program) { return of(nn.NewBatchNorm1d(3)) },
	"batchnorm1d_length": func() (any, program) { return of(nn.NewBatchNorm1d(3, nn.Momentum(0.3), nn.Eps(1e-3))) },
	"batchnorm2d":        func() (any, program) { return of(nn.NewBatchNorm2d(3)) },
	"batchnorm2d_plain":  func() (any, program) { return of(nn.NewBatchNorm2d(3, nn.Plain())) },
	"layernorm":          func() (any, program) { return of(nn.NewLayerNorm(6)) },
	"layernorm_two":      func() (any, program) { return of(nn.NewLayerNormOver([]int{3, 6})) },
	"layernorm_plain":    func() (any, program) { return of(nn.NewLayerNorm(6, nn.Plain())) },
	"rmsnorm":            func() (any, program) { return of(nn.NewRMSNorm(6)) },
	"groupnorm":          func() (any, program) { return of(nn.NewGroupNorm(2, 6)) },
	"embedding":          func() (any, program) { return of(nn.NewEmbedding(7, 3)) },
	"embedding_padding":  func() (any, program) { return of(nn.NewEmbedding(7, 3, nn.PaddingIndex(1))) },
	"attention":          func() (any, program) { return of(nn.NewMultiHeadAttention(8, 2)) },
	"attention_nobias":   func() (any, program) { return of(nn.NewMultiHeadAttention(8, 4, nn.NoBias())) },
	"attention_causal":   func() (any, program) { return of(nn.NewMultiHeadAttention(8, 2, nn.Causal())) },
	"attention_cross": func() (any, program) {
		return attending(nn.NewMultiHeadAttention(8, 2), func(x *tensor) nn.Hide { return nn.Hide{Keys: x} })
	},
	"attention_mask": func() (any, program) {
		return attending(nn.NewMultiHeadAttention(8, 2), func(x *tensor) nn.Hide { return nn.Hide{Mask: x} })
	},
	"rotary":     func() (any, program) { return of(nn.NewRotaryEmbedding(6, 10000)) },
	"gru":        func() (any, program) { return gru(nn.NewGRU(4, 3)) },
	"gru_deep":   func() (any, program) { return gru(nn.NewGRU(4, 3, nn.Layers(2), nn.Bidirectional(), nn.BatchFirst())) },
	"gru_nobias": func() (any, program) { return gru(nn.NewGRU(4, 3, nn.NoBias())) },
	"lstm":       func() (any, program) { return lstm(nn.NewLSTM(4, 3)) },
	"lstm_deep": func() (any, program) {
		return lstm(nn.NewLSTM(4, 3, nn.Layers(2), nn.Bidirectional(), nn.BatchFirst()))
	},
	"maxpool1d": func() (any, program) { return of(nn.NewMaxPool1d(3)) },
	"maxpool2d": func() (any, program) { return of(nn.NewMaxPool2d(2)) },
	"maxpool2d_moved": func() (any, program) {
		return of(nn.NewMaxPool2d(0, nn.Kernel(3, 2), nn.Stride(1, 2), nn.Pad(1, 0), nn.Dilation(2, 1)))
	},
	"avgpool1d":         func() (any, program) { return of(nn.NewAvgPool1d(2, nn.Stride(1))) },
	"avgpool2d":         func() (any, program) { return of(nn.NewAvgPool2d(2)) },
	"avgpool2d_padded":  func() (any, program) { return of(nn.NewAvgPool2d(3, nn.Stride(2), nn.Pad(1))) },
	"avgpool2d_exclude": func() (any, program) { return of(nn.NewAvgPool2d(3, nn.Stride(2), nn.Pad(1), nn.ExcludePadding())) },
	"globalavgpool":     func() (any, program) { return of(nn.GlobalAvgPool{}) },
	"relu":              func() (any, program) { return of(nn.ReLU{}) },
	"gelu":              func() (any, program) { return of(nn.GELU{}) },
	"gelutanh":          func() (any, program) { return of(nn.GELUTanh{}) },
	"silu":              func() (any, program) { return of(nn.SiLU{}) },
	"tanh":              func() (any, program) { return of(nn.Tanh{}) },
	"sigmoid":           func() (any, program) { return of(nn.Sigmoid{}) },
	"softplus":          func() (any, program) { return of(nn.Softplus{}) },
	"leakyrelu":         func() (any, program) { return of(nn.LeakyReLU{Slope: 0.1}) },
	"elu":               func() (any, program) { return of(nn.ELU{Alpha: 1.5}) },
	"softmax":           func() (any, program) { return of(nn.Softmax{Axis: 1}) },
	"flatten":           func() (any, program) { return of(nn.Flatten{}) },
	"sequential": func() (any, program) {
		return of(nn.NewSequential(nn.NewConv2d(1, 2, 3, nn.Pad(1), nn.NoBias()), nn.NewBatchNorm2d(2), nn.ReLU{}, nn.NewMaxPool2d(2),
			nn.Flatten{}, nn.NewLinear(8, 3)))
	},
}

func gru(m *nn.GRU) (any, program) {
	return m, func(c *nn.Ctx, in []*tensor) []*tensor {
		y, end := m.Run(c, in[0], append(in, nil)[1])
		return []*tensor{y, end}
	}
}

func lstm(m *nn.LSTM) (any, program) {
	return m, func(c *nn.Ctx, in []*tensor) []*tensor {
		in = append(in, nil, nil)
		y, end, memory := m.Run(c, in[0], in[1], in[2])
		return []*tensor{y, end, memory}
	}
}

// TestLayers compares every layer's results, gradients and statistics with PyTorch's.
func TestLayers(t *testing.T) {
	r := readReference(t, "layers")
	seen := map[string]bool{}
	for _, name := range r.cases() {
		own := strings.TrimSuffix(strings.TrimSuffix(name, "_train"), "_eval")
		seen[own] = true
		t.Run(name, func(t *testing.T) {
			make := layerCases[own]
			if make == nil {
				t.Fatal("no such case here")
			}
			module, f := make()
			r.check(t, name, module, !strings.HasSuffix(name, "_eval"), f)
		})
	}
	for name := range layerCases {
		if !seen[name] {
			t.Errorf("%s is not in the file", name)
		}
	}
}

// TestLayersLeaveWeights: tensors that a layer makes of weights alone belong to no scope, but do
// not outlive the pass. The next value of each weight is then made in place.
func TestLayersLeaveWeights(t *testing.T) {
	dev, err := millrace.Open("cpu:cache=off,compile=off,explore=wait,tune=off")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	on := nn.On(dev)
	for name, c := range map[string]struct {
		m     nn.Module
		shape []int
	}{
		"linear":        {nn.NewLinear(4, 6, on), []int{2, 4}},
		"conv2d":        {nn.NewConv2d(4, 6, 3, on), []int{2, 4, 5, 5}},
		"convtranspose": {nn.NewConvTranspose1d(4, 6, 3, on), []int{2, 4, 5}},
		"batchnorm":     {nn.NewBatchNorm2d(4, on), []int{2, 4, 5, 5}},
		"layernorm":     {nn.NewLayerNorm(4, on), []int{2, 4}},
		"groupnorm":     {nn.NewGroupNorm(2, 4, on), []int{2, 4, 5}},
		"attention":     {nn.NewMultiHeadAttention(4, 2, on), []int{2, 3, 4}},
	} {
		x := millrace.OnesOn(dev, millrace.Float32, c.shape...)
		params := nn.Params(c.m)
		for _, p := range params {
			if err := p.Tensor().Eval(); err != nil {
				t.Fatal(name, err)
			}
		}
		if err := dev.Scope(func(sc *millrace.Scope) error { return c.m.Forward(nil, x.To(sc)).Eval() }); err != nil {
			t.Fatal(name, err)
		}
		before := dev.Stats().InPlace
		for _, p := range params {
			next := p.Tensor().MulScalar(2)
			p.Tensor().Set(next)
			next.Release()
			if err := p.Tensor().Eval(); err != nil {
				t.Fatal(name, err)
			}
		}
		if n := dev.Stats().InPlace - before; n != int64(len(params)) {
			t.Errorf("%s: %d of %d are in place", name, n, len(params))
		}
	}
}
