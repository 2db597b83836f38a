// Makemore learns to make up names: a perceptron that guesses each next letter from the
// sixteen before it, trained on a list of names, one a line.
//
//	go run ./examples/makemore -names names.txt
//
// Without a file it makes do with three hundred names, which are in the program.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

const block, embed = 16, 64

func main() {
	names := flag.String("names", "", "a file with a name a line")
	hidden := flag.Int("hidden", 128, "units of the hidden layer")
	batch := flag.Int("batch", 64, "contexts a step")
	steps := flag.Int("steps", 5000, "steps to train for")
	eager := flag.Bool("eager", false, "call the step each time instead of replaying it")
	flag.Parse()
	if err := run(context.Background(), *names, *hidden, *batch, *steps, *eager); err != nil {
		log.Fatal(err)
	}
}

// first are the first 300 names of Karpathy's makemore (MIT licence, 2022 Andrej Karpathy).
//
//go:embed testdata/names.txt
var first string

// contexts are, of each letter of each name and of each name's end, what comes before it and
// itself. A name ends with a line's end, which is symbol 0 and stands before its letters, too.
func contexts(path string) (data.Source, *data.Vocabulary, error) {
	text, err := first, error(nil)
	if path != "" {
		if text, err = data.ReadText(path); err != nil {
			return nil, nil, err
		}
	}
	names := strings.Fields(strings.ToLower(text))
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("%s: no names", path)
	}
	text = strings.Join(names, "\n") + "\n"
	symbols, err := data.NewVocabulary(text)
	if err != nil {
		return nil, nil, err
	}
	y, err := symbols.Encode(text)
	if err != nil {
		return nil, nil, err
	}
	each, err := data.FromColumns(data.ColumnOf(y))
	if err != nil {
		return nil, nil, err
	}
	fields := []data.Field{{DType: millrace.Int32, Shape: []int{block}}, {DType: millrace.Int32}}
	src, err := data.Map(each, fields, func(i int, in, out []any) error {
		seen := out[0].([]int32)
		clear(seen)
		for k := 1; k <= block && k <= i && y[i-k] != 0; k++ {
			seen[block-k] = y[i-k]
		}
		copy(out[1].([]int32), in[0].([]int32))
		return nil
	})
	return src, symbols, err
}

func run(ctx context.Context, path string, hidden, batch, steps int, eager bool) error {
	src, symbols, err := contexts(path)
	if err != nil {
		return err
	}
	loader, err := data.NewLoader(src, data.Options{Batch: batch, Shuffle: true, Seed: 1, DropLast: true})
	if err != nil {
		return err
	}
	model := models.NewMakeMore(symbols.Len(), block, embed, hidden, nn.Seed(1))
	opt := optim.SGD(nn.Params(model), optim.Schedule(optim.StepDecay(0.5, max(1, steps/2), 0.2)))
	var options []optim.StepOption
	if !eager {
		options = append(options, optim.Record())
	}
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	}, options...)
	defer step.Close()

	began, i := time.Now(), 0
	progress := models.Progress()
	for b, err := range models.Steps(ctx, loader, steps) {
		if err != nil {
			return err
		}
		loss, err := step.Run(ctx, b.X, b.Y)
		if err != nil {
			return err
		}
		if i%max(1, steps/20) == 0 || i == steps-1 {
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return err
			}
			progress.Say("step %6d  loss %.4f  %.0f µs a step", i, v, float64(time.Since(began).Microseconds())/float64(i+1))
		}
		loss.Release()
		b.Release()
		i++
	}
	progress.End()
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		name, err := makeUp(model, symbols, r)
		if err != nil {
			return err
		}
		fmt.Println(name)
	}
	return nil
}

// makeUp draws one letter after another.
func makeUp(model *models.MakeMore, symbols *data.Vocabulary, r *rand.Rand) (string, error) {
	seen, name := make([]int32, block), []int32{}
	for range 30 {
		p, err := millrace.Values[float32](model.Forward(nn.Eval(), millrace.FromSlice(seen, 1, block)).MulScalar(3).Softmax(-1))
		if err != nil {
			return "", err
		}
		next := int32(models.Draw(p, r))
		if next == 0 {
			break
		}
		name = append(name, next)
		seen = append(seen[1:], next)
	}
	return symbols.Decode(name)
}
