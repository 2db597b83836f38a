package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/examples/samples"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// task is what is learned: a model, from which data, and what the trained model does with a file.
type task struct {
	model  any
	source data.Source
	drop   bool // of smaller last batches
	loss   func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor
	opts   []optim.Option

	// read makes records of a file, and answer has a number for each record of a batch of them.
	read   func(path string) (data.Source, error)
	answer func(b *data.Batch) *millrace.Tensor
}

func newTask(s settings) (*task, error) {
	switch s.Model {
	case "mlp":
		return digits(s)
	case "gpt":
		return characters(s, models.SmallGPT)
	case "nano":
		return characters(s, models.NanoGPT)
	}
	return nil, fmt.Errorf("there is no model %q", s.Model)
}

// digits is reading handwritten digits. Of a file with 64 pixels in each line, it writes a digit for
// each line.
func digits(s settings) (*task, error) {
	table, err := samples.Digits(s.Data)
	if err != nil {
		return nil, err
	}
	pixels := make([]string, 64)
	for i := range pixels {
		pixels[i] = strconv.Itoa(i)
	}
	seed := nn.Seed(s.Seed)
	model := nn.NewSequential(
		nn.Flatten{}, nn.NewLinear(64, 256, seed), nn.ReLU{}, nn.NewDropout(0.1),
		nn.NewLinear(256, 256, seed), nn.ReLU{}, nn.NewDropout(0.1), nn.NewLinear(256, 10, seed),
	)
	logits := func(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
		return model.Forward(c, x.MulScalar(1.0/8).SubScalar(1))
	}
	return &task{
		model: model, source: table,
		loss: func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			return nn.CrossEntropy(logits(c, in[0]), in[1])
		},
		opts: []optim.Option{optim.Schedule(optim.Cosine(s.LR, s.Steps))},
		read: func(path string) (data.Source, error) {
			return data.CSV(path, data.CSVOptions{Columns: pixels, Comment: '#'})
		},
		answer: func(b *data.Batch) *millrace.Tensor { return logits(nn.Eval(), b.X).ArgMax(1).Cast(millrace.Float32) },
	}, nil
}

// characters is predicting each next character of a text. Of a text, it writes the mean loss of each
// stretch of it that is as long as the model's context.
func characters(s settings, config func(symbols int) models.GPTConfig) (*task, error) {
	text, err := samples.Text(s.Data)
	if err != nil {
		return nil, err
	}
	symbols, err := data.NewVocabulary(text)
	if err != nil {
		return nil, err
	}
	cfg := config(symbols.Len())
	windows := func(text string, stride int) (data.Source, error) {
		tokens, err := symbols.Encode(text)
		if err != nil {
			return nil, err
		}
		return data.Windows(tokens, cfg.Context, stride)
	}
	source, err := windows(text, 1)
	if err != nil {
		return nil, err
	}
	model := models.NewGPT(cfg, nn.Seed(s.Seed))
	decayed := func(name string) bool { return !strings.Contains(name, "norm") && !strings.HasSuffix(name, "bias") }
	return &task{
		model: model, source: source, drop: true,
		loss: func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
		},
		opts: []optim.Option{
			optim.Schedule(optim.Warmup(s.Steps/20, 0, optim.Cosine(s.LR, s.Steps))),
			optim.Betas(0.9, 0.99), optim.WeightDecay(0), optim.Group(decayed, optim.WeightDecay(0.1)), optim.ClipNorm(1),
		},
		read: func(path string) (data.Source, error) {
			text, err := data.ReadText(path)
			if err != nil {
				return nil, err
			}
			return windows(text, cfg.Context)
		},
		answer: func(b *data.Batch) *millrace.Tensor {
			return nn.CrossEntropy(model.Forward(nn.Eval(), b.X), b.Y, nn.Each()).Mean(1)
		},
	}, nil
}
