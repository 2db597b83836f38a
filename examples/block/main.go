// Block runs one block of a GPT: causal attention over several heads and two layers,
// each behind a norm and around a sum. Written from operations, it becomes a few kernels,
// which the program lists.
//
//	go run ./examples/block -tokens 256 -width 256 -heads 8
package main

import (
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/millrace-go/millrace"
)

func main() {
	tokens := flag.Int("tokens", 128, "tokens of the text")
	width := flag.Int("width", 128, "features of a token")
	heads := flag.Int("heads", 4, "heads of the attention")
	flag.Parse()
	b := newBlock(*width, *heads)
	x := millrace.Normal(millrace.Float32, 1, 1, *tokens, *width)
	y := b.forward(x)
	if err := y.Eval(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n\nthe kernels of it:\n%s", y, y.Explain())
}

// block has the weights.
type block struct {
	width, heads        int
	qkv, out, up, down  *millrace.Tensor
	gain1, gain2, shift *millrace.Tensor
}

func newBlock(width, heads int) *block {
	draw := millrace.NewGenerator(7)
	weights := func(in, out int) *millrace.Tensor {
		return millrace.Normal(millrace.Float32, draw.Seed(), in, out).MulScalar(1 / math.Sqrt(float64(in)))
	}
	return &block{
		width: width, heads: heads,
		qkv: weights(width, 3*width), out: weights(width, width), up: weights(width, 4*width), down: weights(4*width, width),
		gain1: millrace.Ones(millrace.Float32, width), gain2: millrace.Ones(millrace.Float32, width), shift: millrace.Zeros(millrace.Float32, width),
	}
}

// forward is of x, of shape (batch, tokens, width).
func (b *block) forward(x *millrace.Tensor) *millrace.Tensor {
	x = x.Add(b.attend(x.LayerNorm(b.gain1, b.shift, 1e-5, 2)))
	h := x.LayerNorm(b.gain2, b.shift, 1e-5, 2)
	return x.Add(h.MatMul(b.up).Gelu().MatMul(b.down))
}

// attend is causal: no token sees those behind it.
func (b *block) attend(x *millrace.Tensor) *millrace.Tensor {
	batch, tokens, size := x.Dim(0), x.Dim(1), b.width/b.heads
	parts := millrace.Split(x.MatMul(b.qkv), 2, b.width, b.width, b.width)
	for i, p := range parts {
		parts[i] = p.Reshape(batch, tokens, b.heads, size).Permute(0, 2, 1, 3)
	}
	q, k, v := parts[0], parts[1], parts[2]
	scores := q.MatMul(k.Transpose(2, 3)).MulScalar(1 / math.Sqrt(float64(size)))
	later := millrace.Ones(millrace.Bool, tokens, tokens).Triu(1)
	return scores.MaskedFill(later, math.Inf(-1)).Softmax(3).MatMul(v).Permute(0, 2, 1, 3).Reshape(batch, tokens, b.width).MatMul(b.out)
}
