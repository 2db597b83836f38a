// Gpt learns a text character by character, and then writes more of it.
//
//	go run ./examples/gpt -text input.txt               # 46,289 parameters
//	go run ./examples/gpt -text input.txt -model nano   # 10.7 million, nanoGPT's
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/examples/models"
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
	flag.StringVar(&o.text, "text", "examples/gpt/testdata/input.txt", "the text to learn")
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
	raw, err := os.ReadFile(o.text)
	if err != nil {
		return 0, err
	}
	symbols, text := encode(string(raw))
	configs := map[string]models.GPTConfig{"small": models.SmallGPT(len(symbols)), "nano": models.NanoGPT(len(symbols))}
	dtypes := map[string]millrace.DType{"float32": millrace.Float32, "bfloat16": millrace.BFloat16, "float16": millrace.Float16}
	cfg, known := configs[o.model]
	dt, knownToo := dtypes[o.dtype]
	if !known || !knownToo {
		return 0, fmt.Errorf("no model %q in %q", o.model, o.dtype)
	}
	if len(text) <= cfg.Context {
		return 0, fmt.Errorf("%s: %d characters are too few for a context of %d", o.text, len(text), cfg.Context)
	}
	model := models.NewGPT(cfg, nn.Seed(o.seed))
	fmt.Println(count(model), "parameters,", len(symbols), "characters")

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

	r := rand.New(rand.NewPCG(o.seed, 2))
	began, last, n := time.Now(), 0.0, 0
	for i := range o.steps {
		x, y := window(text, o.batch, cfg.Context, r)
		loss, err := step.Run(ctx, x, y)
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
			fmt.Printf("\rstep %6d  loss %.4f  %.2f ms a step ", i, v, time.Since(began).Seconds()*1e3/float64(i+1))
		}
		for _, t := range []*millrace.Tensor{loss, x, y} {
			t.Release()
		}
	}
	fmt.Println()
	if o.save != "" {
		if err := nn.Save(o.save, model, opt); err != nil {
			return 0, err
		}
	}
	more, err := write(model, cfg, text[:1], o.write, r)
	if err != nil {
		return 0, err
	}
	fmt.Println(decode(symbols, more))
	return last / float64(max(n, 1)), nil
}

// encode numbers a text's characters in order.
func encode(s string) (symbols []rune, text []int32) {
	at := map[rune]int32{}
	for _, r := range s {
		if _, seen := at[r]; !seen {
			at[r] = 0
			symbols = append(symbols, r)
		}
	}
	slices.Sort(symbols)
	for i, r := range symbols {
		at[r] = int32(i)
	}
	for _, r := range s {
		text = append(text, at[r])
	}
	return symbols, text
}

func decode(symbols []rune, text []int32) string {
	var b strings.Builder
	for _, i := range text {
		b.WriteRune(symbols[i])
	}
	return b.String()
}

func count(model any) (n int) {
	for _, p := range nn.Params(model) {
		n += p.Tensor().Len()
	}
	return n
}

// window is a batch of pieces of the text, and the same one character further.
func window(text []int32, batch, size int, r *rand.Rand) (x, y *millrace.Tensor) {
	a, b := make([]int32, 0, batch*size), make([]int32, 0, batch*size)
	for range batch {
		at := r.IntN(len(text) - size)
		a, b = append(a, text[at:at+size]...), append(b, text[at+1:at+size+1]...)
	}
	return millrace.FromSlice(a, batch, size), millrace.FromSlice(b, batch, size)
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
		next, u := 0, r.Float32()
		for next < len(p)-1 && u >= p[next] {
			u -= p[next]
			next++
		}
		text = append(text, int32(next))
	}
	return text, nil
}
