// Sorter trains a small transformer to sort digits: at each place it says which digit comes
// there in order. Sequences are drawn at random, and sorted by Tensor.Sort to train on.
//
//	go run ./examples/sorter -length 10
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// options of the program.
type options struct {
	length, batch, steps         int
	width, heads, layers, tested int
	rate                         float64
	seed                         uint64
}

func main() {
	var o options
	flag.IntVar(&o.length, "length", 10, "digits of a sequence")
	flag.IntVar(&o.batch, "batch", 128, "sequences a step")
	flag.IntVar(&o.steps, "steps", 500, "steps to train for")
	flag.IntVar(&o.width, "width", 64, "features of a place")
	flag.IntVar(&o.heads, "heads", 4, "heads of attention, which divide the width")
	flag.IntVar(&o.layers, "layers", 2, "blocks of attention and a perceptron")
	flag.IntVar(&o.tested, "tested", 2000, "new sequences to sort at the end")
	flag.Float64Var(&o.rate, "lr", 3e-3, "the highest learning rate")
	flag.Uint64Var(&o.seed, "seed", 1, "of first values and sequences")
	flag.Parse()
	if _, err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

// sorter gives for sequences of digits (n, length) the logits (n, length, 10) of the digit
// that comes at each place in order.
type sorter struct {
	Digits, Places *nn.Embedding
	Blocks         []*block
	Norm           *nn.LayerNorm
	Out            *nn.Linear
}

// block is attention and a perceptron, each beside a path that leaves its input as it is.
type block struct {
	Norm1     *nn.LayerNorm
	Attention *nn.MultiHeadAttention
	Norm2     *nn.LayerNorm
	Up, Down  *nn.Linear
}

func newSorter(o options) *sorter {
	seed := nn.Seed(o.seed)
	m := &sorter{
		Digits: nn.NewEmbedding(10, o.width, seed),
		Places: nn.NewEmbedding(o.length, o.width, seed),
		Norm:   nn.NewLayerNorm(o.width),
		Out:    nn.NewLinear(o.width, 10, seed),
	}
	for range o.layers {
		m.Blocks = append(m.Blocks, &block{
			Norm1:     nn.NewLayerNorm(o.width),
			Attention: nn.NewMultiHeadAttention(o.width, o.heads, seed),
			Norm2:     nn.NewLayerNorm(o.width),
			Up:        nn.NewLinear(o.width, 4*o.width, seed),
			Down:      nn.NewLinear(4*o.width, o.width, seed),
		})
	}
	return m
}

// Forward makes it a module.
func (m *sorter) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	places := millrace.ArangeOn(x.Stream(), millrace.Int32, 0, float64(x.Dim(1)), 1)
	h := m.Digits.Forward(c, x).Add(m.Places.Forward(c, places))
	for _, b := range m.Blocks {
		h = h.Add(b.Attention.Forward(c, b.Norm1.Forward(c, h)))
		h = h.Add(b.Down.Forward(c, b.Up.Forward(c, b.Norm2.Forward(c, h)).Gelu()))
	}
	return m.Out.Forward(c, m.Norm.Forward(c, h))
}

// run trains, sorts new sequences, and returns of which part of them every digit is right.
func run(ctx context.Context, o options) (float64, error) {
	if o.length < 1 || o.batch < 1 || o.steps < 1 || o.tested < 1 {
		return 0, fmt.Errorf("%d digits, %d sequences a step, %d steps, %d new sequences: each is at least 1", o.length, o.batch, o.steps, o.tested)
	}
	model := newSorter(o)
	fmt.Println(models.Count(model), "parameters")
	schedule := optim.Warmup(o.steps/20, 0, optim.Cosine(o.rate, o.steps))
	opt := optim.AdamW(nn.Params(model), optim.Schedule(schedule), optim.ClipNorm(1))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	}, optim.Record())
	defer step.Close()

	seeds := millrace.NewGenerator(o.seed)
	began := time.Now()
	progress := models.Progress()
	for i := range o.steps {
		x, y := sequences(seeds, o.batch, o.length)
		loss, err := step.Run(ctx, x, y)
		if err != nil {
			return 0, err
		}
		if i%50 == 49 || i == o.steps-1 {
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return 0, err
			}
			progress.Say("step %5d  loss %.4f  %.2f ms a step", i+1, v, time.Since(began).Seconds()*1e3/float64(i+1))
		}
		for _, t := range []*millrace.Tensor{loss, x, y} {
			t.Release()
		}
	}
	progress.End()

	x, y := sequences(seeds, o.tested, o.length)
	got := model.Forward(nn.Eval(), x).ArgMaxAs(millrace.Int32, -1)
	right, err := millrace.Item[float32](got.Eq(y).All(-1).Cast(millrace.Float32).Mean())
	if err != nil {
		return 0, err
	}
	fmt.Printf("%.2f %% of %d new sequences sorted, such as %v into %v\n", 100*right, o.tested, x.Slice(millrace.At(0)), got.Slice(millrace.At(0)))
	return float64(right), nil
}

// sequences are n random ones, and the same sorted.
func sequences(seeds *millrace.Generator, n, length int) (x, y *millrace.Tensor) {
	x = millrace.Integers(millrace.Int32, seeds.Seed(), 0, 10, n, length)
	return x, x.Sort(-1)
}
