package main

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
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
			var learners [2]*learner
			for i, device := range []string{"cpu:cache=off", "cpu:cache=off,report"} {
				dev, err := millrace.Open(device)
				if err != nil {
					b.Fatal(err)
				}
				defer dev.Close()
				if learners[i], err = newLearner("gpt-64", dev, millrace.Float32, how, false); err != nil {
					b.Fatal(err)
				}
				defer learners[i].close()
			}
			block := func(l *learner) time.Duration {
				start := time.Now()
				for range 100 {
					loss, err := l.one()
					if err == nil {
						err = loss.Eval()
					}
					if err != nil {
						b.Fatal(err)
					}
					loss.Release()
				}
				return time.Since(start)
			}
			for _, l := range learners {
				block(l)
			}
			var ratios []float64
			for b.Loop() {
				first := len(ratios) % 2 // alternate
				took := [2]time.Duration{}
				took[first] = block(learners[first])
				took[1-first] = block(learners[1-first])
				ratios = append(ratios, float64(took[1])/float64(took[0]))
			}
			slices.Sort(ratios)
			b.ReportMetric(100*(ratios[len(ratios)/2]-1), "percent")
		})
	}
}
