package models

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// ResNet is He and others' network for small images (2015, section 4.2): three stages of
// blocks, with 16, 32 and 64 channels.
type ResNet struct {
	Conv   *nn.Conv
	Norm   *nn.BatchNorm
	Blocks []*Residual
	Out    *nn.Linear
}

// Residual is two convolutions beside a path that leaves the input as it is; where the
// image halves it takes every other pixel, and the channels that are new are 0.
type Residual struct {
	Conv1  *nn.Conv
	Norm1  *nn.BatchNorm
	Conv2  *nn.Conv
	Norm2  *nn.BatchNorm
	stride int
	more   int // channels that are new
}

// NewResNet makes one of 6n+2 layers, ResNet-20 for n = 3.
func NewResNet(n, classes int, opts ...nn.Option) *ResNet {
	conv := func(in, out, stride int) *nn.Conv {
		return nn.NewConv2d(in, out, 3, append([]nn.Option{nn.Stride(stride), nn.Pad(1), nn.NoBias()}, opts...)...)
	}
	m := &ResNet{Conv: conv(3, 16, 1), Norm: nn.NewBatchNorm2d(16, opts...)}
	in := 16
	for stage, out := range []int{16, 32, 64} {
		for k := range n {
			stride := 1
			if k == 0 && stage > 0 {
				stride = 2
			}
			m.Blocks = append(m.Blocks, &Residual{
				Conv1: conv(in, out, stride), Norm1: nn.NewBatchNorm2d(out, opts...),
				Conv2: conv(out, out, 1), Norm2: nn.NewBatchNorm2d(out, opts...),
				stride: stride, more: out - in,
			})
			in = out
		}
	}
	m.Out = nn.NewLinear(in, classes, opts...)
	return m
}

// Forward is the logits, (n, classes), of n images, (n, 3, height, width).
func (m *ResNet) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	h := m.Norm.Forward(c, m.Conv.Forward(c, x)).Relu()
	for _, b := range m.Blocks {
		h = b.Forward(c, h)
	}
	return m.Out.Forward(c, h.Mean(2, 3))
}

// Forward is what the block makes of x, (n, channels, height, width).
func (b *Residual) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	h := b.Norm1.Forward(c, b.Conv1.Forward(c, x)).Relu()
	h = b.Norm2.Forward(c, b.Conv2.Forward(c, h))
	if b.stride > 1 {
		every := millrace.R(0, millrace.End, b.stride)
		x = x.Slice(millrace.All, millrace.All, every, every)
	}
	if b.more > 0 {
		x = x.Pad(0, millrace.Padding{Before: b.more / 2, After: b.more - b.more/2}, millrace.Padding{}, millrace.Padding{})
	}
	return h.Add(x).Relu()
}
