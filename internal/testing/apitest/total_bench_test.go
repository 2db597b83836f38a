package apitest

import (
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// BenchmarkSoftmaxBackward times the softmax of Burn's memory post with backward by hand, beside an
// addition, which moves the same bytes: it reads two tensors and writes one.
func BenchmarkSoftmaxBackward(b *testing.B) {
	dev, err := millrace.Open("cpu:compile=wait,tune=off,threads=2")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	x := millrace.NormalOn(dev, millrace.Float32, 1, 32, 512, 2048)
	w := millrace.NormalOn(dev, millrace.Float32, 2, 32, 512, 2048)
	if err := dev.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	var peak int64
	run := func(f func() []*millrace.Tensor) float64 {
		begin := time.Now()
		results := f()
		for _, t := range results {
			if err := t.Eval(); err != nil {
				b.Fatal(err)
			}
		}
		elapsed := time.Since(begin)
		for _, t := range results {
			t.Release()
		}
		return float64(elapsed)
	}
	sum := func() []*millrace.Tensor { return []*millrace.Tensor{x.Add(w)} }
	both := func() []*millrace.Tensor { return totalCases[0].f(x, w) }
	for range 3 {
		run(sum)
		run(both)
	}
	var add, softmax []float64
	for b.Loop() {
		add = append(add, run(sum))
		dev.ResetPeak()
		softmax = append(softmax, run(both))
		peak = max(peak, dev.Stats().Runtime.PeakBytes)
	}
	b.ReportMetric(paired.Median(add)/1e6, "ms/add")
	b.ReportMetric(paired.Median(softmax)/1e6, "ms/softmax")
	b.ReportMetric(paired.Minimum(softmax)/paired.Minimum(add), "least/least")
	b.ReportMetric(paired.Ratio(softmax, add).Mid, "ratio")
	b.ReportMetric(float64(peak)/(32*512*2048*4), "n/peak")
	b.ReportMetric(0, "ns/op")
}
