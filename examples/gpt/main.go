// Gpt learns a text character by character, and then writes more of it.
//
//	go run ./examples/gpt -text input.txt               # 46,289 parameters
//	go run ./examples/gpt -text input.txt -model nano   # 10.7 million, nanoGPT's
//
// Without a file it makes do with some lines of Shakespeare's, which are in the program.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/examples/samples"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// options of the program.
type options struct {
	text, model, dtype, save string
	batch, steps, write      int
	eager                    bool
	lr                       float64
	seed                     uint64
}

func main() {
	var o options
	flag.StringVar(&o.text, "text", "", "a file with the text to learn")
	flag.StringVar(&o.model, "model", "small", "small (BurTorch's) or nano (nanoGPT's)")
	flag.StringVar(&o.dtype, "dtype", "float32", "what layers compute in: float32, bfloat16 or float16; weights are float32")
	flag.StringVar(&o.save, "save", "", "where to keep the weights, as safetensors")
	flag.IntVar(&o.batch, "batch", 16, "texts a step")
	flag.IntVar(&o.steps, "steps", 2000, "steps to train for")
	flag.IntVar(&o.write, "write", 300, "characters to write at the end")
	flag.BoolVar(&o.eager, "eager", false, "call the step each time instead of replaying it")
	flag.Float64Var(&o.lr, "lr", 3e-3, "the highest learning rate")
	flag.Uint64Var(&o.seed, "seed", 1, "of first values, batches and writing")
	flag.Parse()
	if _, err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

// run trains, writes, and returns the mean loss of the last tenth of the steps.
func run(ctx context.Context, o options) (float64, error) {
	text, err := samples.Text(o.text)
	if err != nil {
		return 0, err
	}
	symbols, err := data.NewVocabulary(text)
	if err != nil {
		return 0, err
	}
	tokens, err := symbols.Encode(text)
	if err != nil {
		return 0, err
	}
	configs := map[string]models.GPTConfig{"small": models.SmallGPT(symbols.Len()), "nano": models.NanoGPT(symbols.Len())}
	dtypes := map[string]millrace.DType{"float32": millrace.Float32, "bfloat16": millrace.BFloat16, "float16": millrace.Float16}
	cfg, known := configs[o.model]
	dt, knownToo := dtypes[o.dtype]
	if !known || !knownToo {
		return 0, fmt.Errorf("no model %q in %q", o.model, o.dtype)
	}
	windows, err := data.Windows(tokens, cfg.Context, 1)
	if err != nil {
		return 0, err
	}
	loader, err := data.NewLoader(windows, data.Options{Batch: o.batch, Shuffle: true, Seed: o.seed, DropLast: true})
	if err != nil {
		return 0, err
	}
	model := models.NewGPT(cfg, nn.Seed(o.seed))
	fmt.Println(models.Count(model), "parameters,", symbols.Len(), "characters")

	decayed := func(name string) bool { return !strings.Contains(name, "norm") && !strings.HasSuffix(name, "bias") }
	choices := []optim.Option{
		optim.Schedule(optim.Warmup(o.steps/20, 0, optim.Cosine(o.lr, o.steps))),
		optim.Betas(0.9, 0.99), optim.WeightDecay(0), optim.Group(decayed, optim.WeightDecay(0.1)), optim.ClipNorm(1),
	}
	how := []optim.StepOption{optim.Random(nn.NewRandom(o.seed))}
	if !o.eager {
		how = append(how, optim.Record())
	}
	if dt != millrace.Float32 {
		how = append(how, optim.Compute(dt))
	}
	if dt == millrace.Float16 {
		choices = append(choices, optim.LossScale(optim.Scaling{}))
	}
	opt := optim.AdamW(nn.Params(model), choices...)
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	}, how...)
	defer step.Close()

	began, i, last, n := time.Now(), 0, 0.0, 0
	progress := models.Progress()
	for b, err := range models.Steps(ctx, loader, o.steps) {
		if err != nil {
			return 0, err
		}
		loss, err := step.Run(ctx, b.X, b.Y)
		if err != nil {
			return 0, err
		}
		if i >= o.steps-o.steps/10 || i%max(1, o.steps/50) == 0 || i == o.steps-1 {
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return 0, err
			}
			if i >= o.steps-max(1, o.steps/10) {
				last, n = last+float64(v), n+1
			}
			progress.Say("step %6d  loss %.4f  %.2f ms a step", i, v, time.Since(began).Seconds()*1e3/float64(i+1))
		}
		loss.Release()
		b.Release()
		i++
	}
	progress.End()
	if o.save != "" {
		if err := models.Save(o.save, model, opt); err != nil {
			return 0, err
		}
	}
	written, err := write(model, cfg, tokens[:1], o.write, rand.New(rand.NewPCG(o.seed, 2)))
	if err != nil {
		return 0, err
	}
	more, err := symbols.Decode(written)
	if err != nil {
		return 0, err
	}
	fmt.Println(more)
	return last / float64(max(n, 1)), nil
}

// write draws one character after another, each from what the model says of those before.
func write(model *models.GPT, cfg models.GPTConfig, start []int32, n int, r *rand.Rand) ([]int32, error) {
	text := slices.Clone(start)
	for range n {
		seen := text[max(0, len(text)-cfg.Context):]
		logits := model.Forward(nn.Eval(), millrace.FromSlice(seen, 1, len(seen)))
		p, err := millrace.Values[float32](logits.Slice(millrace.At(0), millrace.At(-1)).Softmax(-1))
		if err != nil {
			return nil, err
		}
		text = append(text, int32(models.Draw(p, r)))
	}
	return text, nil
}
