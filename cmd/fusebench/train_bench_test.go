package main

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// BenchmarkEager times an eager step of the small GPT on one text: the cost of recording,
// differentiating and planning its ops.
func BenchmarkEager(b *testing.B) {
	o, err := millrace.ParseOptions("cpu:cache=off,threads=1")
	if err != nil {
		b.Fatal(err)
	}
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	l, err := newLearner("gpt-1", dev, millrace.Float32, eager, false)
	if err != nil {
		b.Fatal(err)
	}
	defer l.close()
	step := func() {
		loss, err := l.one()
		if err == nil {
			err = loss.Eval()
		}
		if err != nil {
			b.Fatal(err)
		}
		loss.Release()
	}
	for range 50 {
		step()
	}
	before := dev.Stats().Ops
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		step()
		n++
	}
	b.ReportMetric(float64(dev.Stats().Ops-before)/float64(n), "ops/op")
}

// BenchmarkReport measures the cost of Options.Report for a training of 100 steps of the small
// GPT at batch 64. Blocks of steps with and without it alternate.
func BenchmarkReport(b *testing.B) {
	for _, how := range []string{eager, recorded} {
		b.Run(how, func(b *testing.B) {
			without := newTurns(b, "cpu:cache=off", "gpt-64", how)
			with := newTurns(b, "cpu:cache=off,report", "gpt-64", how)
			b.ReportMetric(100*(inTurns(b, with, without).Mid-1), "percent")
		})
	}
}

// BenchmarkBound times bound steps beside recorded ones. Blocks of steps alternate; a round of the
// benchmark is a block of each.
func BenchmarkBound(b *testing.B) {
	for _, variant := range []string{"makemore-4x1", "makemore-64x1", "makemore-1024x1", "makemore-4x64", "makemore-64x64", "gpt-1"} {
		b.Run(variant, func(b *testing.B) {
			unbound := newTurns(b, "cpu:cache=off", variant, recorded)
			fixed := newTurns(b, "cpu:cache=off", variant, bound)
			ratio := inTurns(b, fixed, unbound)
			b.ReportMetric(paired.Median(fixed.times)/1e3, "bound-µs")
			b.ReportMetric(paired.Median(unbound.times)/1e3, "recorded-µs")
			b.ReportMetric(ratio.Mid, "ratio")
			b.ReportMetric(ratio.Lo, "ratio-low")
			b.ReportMetric(ratio.Hi, "ratio-high")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// turns is a learner that is timed a block of steps at a time.
type turns struct {
	l     *learner
	times []float64 // of a step in each block, in ns
}

// blockSteps is the number of steps in a block.
const blockSteps = 100

// newTurns makes a learner on a device of its own, and runs its steps until nothing is compiled
// any more.
func newTurns(b *testing.B, device, variant, how string) *turns {
	dev, err := millrace.Open(device)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dev.Close() })
	l, err := newLearner(variant, dev, millrace.Float32, how, false)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.close)
	x := &turns{l: l}
	for begin := time.Now(); time.Since(begin) < soakTime; {
		x.run(b)
	}
	if err := dev.Wait(); err != nil {
		b.Fatal(err)
	}
	x.run(b)
	x.times = nil
	return x
}

// run runs a block of steps, each with its loss.
func (x *turns) run(b *testing.B) {
	begin := time.Now()
	for range blockSteps {
		loss, err := x.l.one()
		if err == nil {
			err = loss.Eval()
		}
		if err != nil {
			b.Fatal(err)
		}
		x.l.done(loss)
	}
	x.times = append(x.times, float64(time.Since(begin))/blockSteps)
}

// inTurns runs blocks of the two in alternating order, and returns the ratio of their times.
func inTurns(b *testing.B, num, den *turns) paired.Estimate {
	for b.Loop() {
		order := []*turns{num, den}
		if len(num.times)%2 == 1 {
			slices.Reverse(order)
		}
		for _, x := range order {
			x.run(b)
		}
	}
	return paired.Ratio(num.times, den.times)
}
