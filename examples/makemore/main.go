// Makemore learns to make up names: a perceptron that guesses each next letter from the
// sixteen before it, trained on a list of names, one a line.
//
//	go run ./examples/makemore -names names.txt
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

const block, embed = 16, 64

func main() {
	names := flag.String("names", "examples/makemore/testdata/names.txt", "a file with a name a line")
	hidden := flag.Int("hidden", 128, "units of the hidden layer")
	batch := flag.Int("batch", 64, "contexts a step")
	steps := flag.Int("steps", 5000, "steps to train for")
	eager := flag.Bool("eager", false, "call the step each time instead of replaying it")
	flag.Parse()
	if err := run(context.Background(), *names, *hidden, *batch, *steps, *eager); err != nil {
		log.Fatal(err)
	}
}

// text is a list of names as numbers: 0 is the end of one, and what comes before it.
type text struct {
	letters []rune
	x       []int32 // block numbers for each of y
	y       []int32
}

func read(path string) (*text, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	names := strings.Fields(strings.ToLower(string(raw)))
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no names", path)
	}
	t := new(text)
	for _, name := range names {
		for _, r := range name {
			if !slices.Contains(t.letters, r) {
				t.letters = append(t.letters, r)
			}
		}
	}
	slices.Sort(t.letters)
	for _, name := range names {
		seen := make([]int32, block)
		for _, r := range name + "." {
			next := int32(slices.Index(t.letters, r) + 1) // 0 for the end
			t.x, t.y = append(t.x, seen...), append(t.y, next)
			seen = append(seen[1:], next)
		}
	}
	return t, nil
}

func run(ctx context.Context, path string, hidden, batch, steps int, eager bool) error {
	t, err := read(path)
	if err != nil {
		return err
	}
	model := models.NewMakeMore(len(t.letters)+1, block, embed, hidden, nn.Seed(1))
	opt := optim.SGD(nn.Params(model), optim.Schedule(optim.StepDecay(0.5, max(1, steps/2), 0.2)))
	var options []optim.StepOption
	if !eager {
		options = append(options, optim.Record())
	}
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	}, options...)
	defer step.Close()

	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]int32, 0, batch*block), make([]int32, 0, batch)
	began := time.Now()
	for i := range steps {
		x, y = x[:0], y[:0]
		for range batch {
			k := r.IntN(len(t.y))
			x, y = append(x, t.x[k*block:(k+1)*block]...), append(y, t.y[k])
		}
		in, want := millrace.FromSlice(x, batch, block), millrace.FromSlice(y)
		loss, err := step.Run(ctx, in, want)
		if err != nil {
			return err
		}
		if i%max(1, steps/20) == 0 || i == steps-1 {
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return err
			}
			fmt.Printf("\rstep %6d  loss %.4f  %.0f µs a step ", i, v, float64(time.Since(began).Microseconds())/float64(i+1))
		}
		loss.Release()
		in.Release()
		want.Release()
	}
	fmt.Println()
	for range 10 {
		name, err := makeUp(model, t.letters, r)
		if err != nil {
			return err
		}
		fmt.Println(name)
	}
	return nil
}

// makeUp draws one letter after another.
func makeUp(model *models.MakeMore, letters []rune, r *rand.Rand) (string, error) {
	seen, name := make([]int32, block), ""
	for range 30 {
		p, err := millrace.Values[float32](model.Forward(nn.Eval(), millrace.FromSlice(seen, 1, block)).MulScalar(3).Softmax(-1))
		if err != nil {
			return "", err
		}
		next, u := 0, r.Float32()
		for next < len(p)-1 && u >= p[next] {
			u -= p[next]
			next++
		}
		if next == 0 {
			break
		}
		name += string(letters[next-1])
		seen = append(seen[1:], int32(next))
	}
	return name, nil
}
