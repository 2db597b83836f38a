// Digits learns to read handwritten digits of 8 by 8 pixels, and says how many of those it
// has not seen it reads rightly.
//
//	go run ./examples/digits -csv digits.csv
//
// Without a file it makes do with three hundred digits, which are in the program.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/examples/samples"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

func main() {
	csv := flag.String("csv", "", "a file with 64 pixels, 0 to 16, and a label in each line")
	epochs := flag.Int("epochs", 20, "times to go over the digits")
	batch := flag.Int("batch", 64, "digits a step")
	flag.Parse()
	if _, err := run(context.Background(), *csv, *epochs, *batch); err != nil {
		log.Fatal(err)
	}
}

// run trains on four fifths of the digits and returns the share of the others that it recognises.
func run(ctx context.Context, path string, epochs, batch int) (float64, error) {
	all, err := samples.Digits(path)
	if err != nil {
		return 0, err
	}
	train, test, err := data.Split(all, 0.8, 1)
	if err != nil {
		return 0, err
	}
	loader, err := data.NewLoader(train, data.Options{Batch: batch, Shuffle: true, Seed: 1})
	if err != nil {
		return 0, err
	}
	model := models.NewDigits(nn.Seed(1))
	opt := optim.AdamW(nn.Params(model), optim.Schedule(optim.Cosine(3e-3, epochs*loader.Len())))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, scaled(in[0])), in[1])
	}, optim.Record(), optim.Random(nn.NewRandom(1)))
	defer step.Close()

	began, part := time.Now(), 0.0
	progress := models.Progress()
	for epoch := range epochs {
		var last *millrace.Tensor
		for b, err := range loader.Batches(ctx) {
			if err != nil {
				return 0, err
			}
			loss, err := step.Run(ctx, b.X, b.Y)
			if err != nil {
				return 0, err
			}
			b.Release()
			if last != nil {
				last.Release()
			}
			last = loss
		}
		loss, err := millrace.Item[float32](last)
		if err != nil {
			return 0, err
		}
		if part, err = accuracy(ctx, model, test, batch); err != nil {
			return 0, err
		}
		progress.Say("epoch %3d  loss %.4f  %.2f %% of %d right  %.1f s", epoch+1, loss, 100*part, test.Len(), time.Since(began).Seconds())
	}
	progress.End()
	return part, nil
}

// scaled is pixels as a network likes them: about 0, and not large.
func scaled(x *millrace.Tensor) *millrace.Tensor { return x.MulScalar(1.0 / 8).SubScalar(1) }

// accuracy is which part of a source's digits the model reads rightly.
func accuracy(ctx context.Context, model nn.Module, src data.Source, batch int) (float64, error) {
	loader, err := data.NewLoader(src, data.Options{Batch: batch})
	if err != nil {
		return 0, err
	}
	right := 0
	for b, err := range loader.Batches(ctx) {
		if err != nil {
			return 0, err
		}
		hits := model.Forward(nn.Eval(), scaled(b.X)).ArgMaxAs(millrace.Int32, -1).Eq(b.Y)
		n, err := millrace.Item[int32](hits.Cast(millrace.Int32).Sum())
		if err != nil {
			return 0, err
		}
		right += int(n)
		b.Release()
	}
	return float64(right) / float64(src.Len()), nil
}
