//go:build unix

package main

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// BenchmarkStep times the program's training steps, sequences included: medians, in ms, of the
// time by the clock and of processor time.
//
//	go test ./examples/sorter -run '^$' -bench Step -benchtime 100x
func BenchmarkStep(b *testing.B) {
	o := options{length: 10, batch: 128, width: 64, heads: 4, layers: 2, seed: 1}
	model := newSorter(o)
	opt := optim.AdamW(nn.Params(model), optim.LR(3e-3), optim.ClipNorm(1))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	}, optim.Record())
	defer step.Close()
	seeds := millrace.NewGenerator(o.seed)
	var took, used []float64
	for range b.N {
		before, at := processorTime(b), time.Now()
		x, y := sequences(seeds, o.batch, o.length)
		loss, err := step.Run(b.Context(), x, y)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := millrace.Item[float32](loss); err != nil {
			b.Fatal(err)
		}
		for _, t := range []*millrace.Tensor{loss, x, y} {
			t.Release()
		}
		took = append(took, time.Since(at).Seconds()*1e3)
		used = append(used, (processorTime(b)-before).Seconds()*1e3)
	}
	slices.Sort(took)
	slices.Sort(used)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[b.N/2], "ms")
	b.ReportMetric(used[b.N/2], "processor-ms")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
