//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/internal/paired"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

func init() { programs["stepfigures"] = stepFigures }

// TestStepFigures measures recorded training steps in turns: of all ranks together over the same
// ranks each for itself, of leaves on one rank over the whole batch, and of ranks that divide the
// state over those that do not.
func TestStepFigures(t *testing.T) {
	if os.Getenv("MILLRACE_LONG") == "" {
		t.Skip("it only measures: MILLRACE_LONG=1 runs it")
	}
	for name, j := range jobs(t) {
		for _, n := range []int{1, 2} {
			out, err := j.run(t, "stepfigures", n)
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			for _, line := range regexp.MustCompile(`(?m)^figure: .*$`).FindAllString(out, -1) {
				t.Logf("%s, %d ranks: %s", name, n, line)
			}
		}
	}
}

// stepped is a model with the inputs of one rank.
type stepped struct {
	name  string
	model any
	loss  func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor
	in    []*millrace.Tensor
}

func perceptron(at millrace.Place, name string, rows int, widths ...int) stepped {
	var m []*nn.Linear
	for i := range len(widths) - 1 {
		m = append(m, nn.NewLinear(widths[i], widths[i+1], nn.Seed(uint64(i)), nn.On(at)))
	}
	x := millrace.NormalOn(at, millrace.Float32, 1, rows, widths[0])
	y := millrace.ZerosOn(at, millrace.Int32, rows)
	return stepped{name, m, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		h := in[0]
		for i, l := range m {
			if h = l.Forward(c, h); i < len(m)-1 {
				h = h.Relu()
			}
		}
		return nn.CrossEntropy(h, in[1])
	}, []*millrace.Tensor{x, y}}
}

func gpt(at millrace.Place, rows int) stepped {
	m := models.NewGPT(models.GPTConfig{Symbols: 65, Context: 128, Layers: 4, Heads: 6, Width: 192}, nn.Seed(1), nn.On(at))
	x := millrace.ArangeOn(at, millrace.Int32, 0, float64(rows*128), 1).RemScalar(65).Reshape(rows, 128)
	return stepped{fmt.Sprintf("GPT, 1.8 million parameters, %d rows", rows), m, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(m.Forward(c, in[0]).Reshape(-1, 65), in[1].Reshape(-1))
	}, []*millrace.Tensor{x, x}}
}

func stepFigures() error {
	ctx := context.Background()
	w, err := dist.Open(ctx, dist.Options{})
	if err != nil {
		return err
	}
	d, err := millrace.Open("cpu:threads=1")
	if err != nil {
		return err
	}
	leaves := []int{w.Size()}
	few, many := 4, 256 // rows
	if w.Size() == 1 {
		leaves, few = []int{1, 2, 4, 8}, 8
	}
	for _, x := range []func() stepped{
		func() stepped { return gpt(d, few) },
		func() stepped { return perceptron(d, "perceptron, 1.1 million parameters", many, 784, 1024, 256, 10) },
		func() stepped { return perceptron(d, "perceptron, 85 thousand parameters", many, 784, 100, 64, 10) },
	} {
		for _, n := range leaves {
			if err := measure(ctx, w, x(), "alone", nil, "together", &optim.Ranks{Leaves: n}); err != nil {
				return err
			}
		}
		if n := w.Size(); n > 1 {
			if err := measure(ctx, w, x(), "together", &optim.Ranks{Leaves: n}, "divided", &optim.Ranks{Leaves: n, Sharded: true}); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// measure times steps of two kinds in turns. Without ranks, a rank runs alone.
func measure(ctx context.Context, w *dist.World, x stepped, name1 string, first *optim.Ranks, name2 string, second *optim.Ranks) error {
	made := func(r *optim.Ranks) *optim.Step {
		opts := []optim.StepOption{optim.Record()}
		if r != nil {
			r.SameEvery = -1
			opts = append(opts, optim.Across(w, *r))
		}
		return optim.AdamW(nn.Params(x.model)).Step(x.loss, opts...)
	}
	before, after := made(first), made(second)
	runs := 2
	turn := func(s *optim.Step) (float64, error) {
		if err := w.Barrier(ctx); err != nil {
			return 0, err
		}
		start := time.Now()
		for range runs {
			loss, err := s.Run(ctx, x.in...)
			if err == nil {
				err = loss.Eval()
			}
			if err != nil {
				return 0, err
			}
			loss.Release()
		}
		return time.Since(start).Seconds() / float64(runs) * 1000, nil
	}
	var one, all []float64
	for i := range 40 {
		a, err := turn(before)
		if err != nil {
			return err
		}
		b, err := turn(after)
		if err != nil {
			return err
		}
		if i == 9 && a < 20 {
			runs = 10
		}
		if i >= 10 {
			one, all = append(one, a), append(all, b)
		}
	}
	if w.Rank() == 0 {
		r := paired.Ratio(all, one)
		os.Stdout.WriteString(fmt.Sprintf("\nfigure: %s, %d leaves, %s: %.2f ms, %s %.2f ms, ratio %.3f (%.3f to %.3f)\n", x.name, second.Leaves, name2, paired.Median(all), name1, paired.Median(one), r.Mid, r.Lo, r.Hi))
	}
	return nil
}
