package main

import (
	"testing"

	"github.com/millrace-go/millrace"
)

func BenchmarkTinyGraphs(b *testing.B) {
	for _, name := range []string{"tiny", "small"} {
		g := graphs[name]
		b.Run(name+"/go", func(b *testing.B) {
			at := &point{a: g.a, b: g.b}
			for b.Loop() {
				g.plain(at)
			}
		})
		b.Run(name+"/bound", func(b *testing.B) {
			dev, err := millrace.Open("cpu:cache=off")
			if err != nil {
				b.Fatal(err)
			}
			defer dev.Close()
			s := dev.NewStream()
			in := []*millrace.Tensor{millrace.ScalarOn(dev, g.a), millrace.ScalarOn(dev, g.b)}
			r, err := g.recording().Bind(s, in, nil)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := r.Run(); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			st := dev.Stats()
			b.ReportMetric(float64(st.BoundCalls)/float64(st.BoundRuns), "calls/run")
			b.ReportMetric(float64(st.Runtime.Launches)/float64(st.BoundRuns), "launches/run")
			at := &point{a: g.a, b: g.b}
			g.plain(at)
			for i, want := range []float64{at.g, at.da, at.db} {
				v, err := millrace.Values[float64](r.Results()[i])
				if err != nil || v[0] != want {
					b.Errorf("result %d: %v (%v), want %v", i, v, err, want)
				}
			}
		})
	}
}
