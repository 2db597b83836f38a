// Gru learns which of two kinds a sequence of symbols is of, with gated recurrent units:
// those of package nn, or the same by hand, a Go loop over tensor ops.
//
//	go run ./examples/gru
//	go run ./examples/gru -byhand
package main

import (
	"context"
	"flag"
	"log"
	"math/rand/v2"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

type options struct {
	symbols, length, batch, steps int
	embed, hidden                 int
	byHand                        bool
}

func main() {
	var o options
	flag.IntVar(&o.symbols, "symbols", 1000, "kinds of symbols")
	flag.IntVar(&o.length, "length", 50, "symbols in a sequence")
	flag.IntVar(&o.batch, "batch", 50, "sequences a step")
	flag.IntVar(&o.steps, "steps", 200, "steps to train for")
	flag.IntVar(&o.embed, "embed", 128, "numbers for a symbol")
	flag.IntVar(&o.hidden, "hidden", 256, "units")
	flag.BoolVar(&o.byHand, "byhand", false, "the recurrence as a Go loop over tensor ops")
	flag.Parse()
	if _, err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

// run trains and returns the losses.
func run(ctx context.Context, o options) ([]float32, error) {
	model := models.NewGRUClassifier(o.symbols, o.embed, o.hidden, 2, nn.Seed(1))
	model.ByHand = o.byHand
	opt := optim.AdamW(nn.Params(model), optim.LR(1e-3), optim.ClipNorm(5))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	}, optim.Record())
	defer step.Close()

	r := rand.New(rand.NewPCG(1, 2))
	var losses []float32
	began := time.Now()
	progress := models.Progress()
	for i := range o.steps {
		x, y := sequences(o, r)
		loss, err := step.Run(ctx, x, y)
		if err != nil {
			return nil, err
		}
		v, err := millrace.Item[float32](loss)
		if err != nil {
			return nil, err
		}
		losses = append(losses, v)
		progress.Say("step %5d  loss %.4f  %.1f ms a step", i, v, time.Since(began).Seconds()*1e3/float64(i+1))
		for _, t := range []*millrace.Tensor{loss, x, y} {
			t.Release()
		}
	}
	progress.End()
	return losses, nil
}

// sequences are random; of the second kind are those in which more symbols of the upper
// half than of the lower stand in the last ten places.
func sequences(o options, r *rand.Rand) (x, y *millrace.Tensor) {
	ids, kinds := make([]int32, o.batch*o.length), make([]int32, o.batch)
	for i := range o.batch {
		upper := 0
		for k := range o.length {
			id := r.IntN(o.symbols)
			ids[i*o.length+k] = int32(id)
			if k >= o.length-9 && id >= o.symbols/2 {
				upper++
			}
		}
		if upper > 4 {
			kinds[i] = 1
		}
	}
	return millrace.FromSlice(ids, o.batch, o.length), millrace.FromSlice(kinds)
}
