package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/millrace-go/millrace/gomlxbackend"
)

type config struct {
	model         string
	batch, hidden int
	steps, report int

	// Of a transformer.
	layers, context, generate int
	text                      string // a file; "" for some scenes
	vocabulary                int    // characters of the text
}

// source makes batches.
type source interface{ next() train.Batch }

// history is what became of a training.
type history struct {
	losses []float64
	times  []time.Duration // of steps, without making their batches
	sample string          // what a transformer made up
}

// step is the median time of the second half of the steps.
func (h *history) step() time.Duration {
	half := slices.Sorted(slices.Values(h.times[len(h.times)/2:]))
	return half[len(half)/2]
}

// differ is the largest difference of losses of one step.
func (h *history) differ(other *history) float64 {
	most := 0.0
	for i, l := range h.losses {
		most = max(most, math.Abs(l-other.losses[i]))
	}
	return most
}

// fit trains on a backend. Each step's loss is read, as a program that shows
// it would.
func fit(c config, name string, w io.Writer, each func(step int, backend compute.Backend)) (*history, error) {
	net := networks[c.model]
	if net == nil {
		return nil, fmt.Errorf("no model %q; there are %s", c.model, strings.Join(names(), ", "))
	}
	if c.steps < 1 || c.batch < 1 || c.hidden < 16 || c.report < 1 {
		return nil, fmt.Errorf("%d steps of %d examples, %d wide, reports every %d: too few", c.steps, c.batch, c.hidden, c.report)
	}
	if c.model == "transformer" && (c.layers < 1 || c.context < 2 || c.hidden%(4*headWidth) != 0) {
		return nil, fmt.Errorf("%d layers of vectors of %d/4, for %d characters: too few, or no heads of %d", c.layers, c.hidden, c.context, headWidth)
	}
	var data source = newDataset(c.batch)
	var scenes *text
	if c.model == "transformer" {
		var err error
		if scenes, err = newText(c.text, c.batch, c.context); err != nil {
			return nil, err
		}
		data, c.vocabulary = scenes, len(scenes.chars)
	}
	backend, err := compute.NewWithConfig(name)
	if err != nil {
		return nil, err
	}
	defer backend.Finalize()
	store := model.NewStore()
	defer store.Finalize()
	trainer := train.NewTrainer(backend, store, func(scope *model.Scope, images *graph.Node) *graph.Node {
		return net(c, scope, images)
	}, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(1e-3).Done(), nil, nil)
	h := &history{}
	for i := range c.steps {
		batch := data.next()
		start := time.Now()
		metrics, err := trainer.TrainStep(batch)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		h.losses = append(h.losses, float64(tensors.ToScalar[float32](metrics[0])))
		h.times = append(h.times, time.Since(start))
		for _, m := range metrics {
			if err := m.FinalizeAll(); err != nil {
				return nil, err
			}
		}
		if each != nil {
			each(i, backend)
		}
		if (i+1)%c.report == 0 {
			fmt.Fprintf(w, "%s: step %d, loss %.4f, %v a step%s\n", name, i+1, h.losses[i], h.step(), state(backend))
		}
	}
	if scenes != nil && c.generate > 0 {
		start := time.Now()
		if h.sample, err = generate(c, backend, store, scenes, "\n", c.generate, 0.7, nil); err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "%s: %v a character\n%s\n", name, time.Since(start)/time.Duration(c.generate), h.sample)
	}
	return h, nil
}

// state is the memory that the process and the device hold.
func state(b compute.Backend) string {
	text := ""
	if rss := residentMiB(); rss > 0 {
		text = fmt.Sprintf(", %d MiB resident", rss)
	}
	if m, ok := b.(*gomlxbackend.Backend); ok {
		s := m.Device().Stats()
		text += fmt.Sprintf(", %d KiB live, %d plans, %d explored", s.LiveBytes>>10, s.Plans, s.Explorations)
	}
	return text
}

// residentMiB is the memory of the process, 0 where the system does not tell.
func residentMiB() int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "VmRSS:" {
			kib, _ := strconv.Atoi(f[1])
			return kib >> 10
		}
	}
	return 0
}
