package main

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// BenchmarkEager is a step of the small GPT on one text, called each time: what its ops cost
// to record, to differentiate and to plan.
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
