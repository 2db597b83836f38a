package autodiff_test

import (
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/paired"
)

// timed are the long functions of the benchmarks here.
var timed = []struct {
	step    string
	n, rows int
}{{"sines", 240, 2000}, {"light", 100, 2000}, {"roots", 90, 2000}, {"residual", 40, 2000}, {"attention", 20, 200}, {"norm", 30, 2000}}

// BenchmarkGradOutside takes the gradients of long functions by their input and a weight, outside
// of scopes and in a scope, in turns. It reports medians of the turns: times in ms, the ratio of
// each turn's times, ops (the ops outside that a scope does not run are computed again), and the
// peak of device memory beyond the operands, in bytes for each byte of the input.
func BenchmarkGradOutside(b *testing.B) {
	for _, c := range timed {
		b.Run(c.step, func(b *testing.B) {
			f := repeated(c.n, c.step)
			var out, in turns
			out.open(b, c.rows, f, false)
			in.open(b, c.rows, f, true)
			for range 4 { // plans are made, searched for and compiled
				out.turn(b)
				in.turn(b)
			}
			out.ms, in.ms = nil, nil
			for i := 0; b.Loop(); i++ {
				first, second := &out, &in
				if i%2 == 1 {
					first, second = second, first
				}
				first.turn(b)
				second.turn(b)
			}
			ratios := make([]float64, len(out.ms))
			for i := range ratios {
				ratios[i] = out.ms[i] / in.ms[i]
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(paired.Median(out.ms), "outside-ms")
			b.ReportMetric(paired.Median(in.ms), "scope-ms")
			b.ReportMetric(paired.Median(ratios), "ratio")
			b.ReportMetric(float64(out.ops), "outside-ops")
			b.ReportMetric(float64(in.ops), "scope-ops")
			b.ReportMetric(float64(out.ops-in.ops), "again-ops")
			b.ReportMetric(float64(out.peak)/float64(400*c.rows), "outside-peak")
			b.ReportMetric(float64(in.peak)/float64(400*c.rows), "scope-peak")
		})
	}
}

// BenchmarkWatchedForward runs forward passes of which no gradient is taken, through watched handles
// and through the tensors themselves, in turns. It reports medians of the ratios of the turns'
// times, and the peaks of one pass and of ten, in bytes for each byte of the input.
func BenchmarkWatchedForward(b *testing.B) {
	for _, c := range timed {
		b.Run(c.step, func(b *testing.B) {
			f := repeated(c.n, c.step)
			var plain, watched turns
			plain.open(b, c.rows, f, false)
			watched.open(b, c.rows, f, false)
			watched.x, watched.w = autodiff.Watch(watched.x), autodiff.Watch(watched.w)
			for range 3 {
				plain.forward(b, 1)
				watched.forward(b, 1)
			}
			one, peaks := watched.peak, [2]int64{}
			plain.ms, watched.ms = nil, nil
			for b.Loop() {
				plain.forward(b, 10)
				watched.forward(b, 10)
				peaks = [2]int64{plain.peak, watched.peak}
			}
			ratios := make([]float64, len(plain.ms))
			for i := range ratios {
				ratios[i] = watched.ms[i] / plain.ms[i]
			}
			size := float64(400 * c.rows)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(paired.Median(ratios), "ratio")
			b.ReportMetric(float64(one)/size, "watched-peak")
			b.ReportMetric(float64(peaks[1])/size, "watched-peak-of-10")
			b.ReportMetric(float64(peaks[0])/size, "plain-peak-of-10")
		})
	}
}

// forward runs n passes without gradients, and drops what they made.
func (s *turns) forward(b *testing.B, n int) {
	collect(b, s.d)
	s.d.ResetPeak()
	before := s.d.Stats()
	start := time.Now()
	for range n {
		if _, err := millrace.Item[float32](s.f(s.x, s.w).Sum()); err != nil {
			b.Fatal(err)
		}
	}
	s.ms = append(s.ms, float64(time.Since(start).Nanoseconds())/1e6)
	s.peak = s.d.Stats().Runtime.PeakBytes - before.Runtime.AllocBytes
}

// turns are the passes of BenchmarkGradOutside on one side. ops and peak are those of the last one.
type turns struct {
	d       *millrace.Device
	x, w    *T
	f       func(x, w *T) *T
	inScope bool

	ms        []float64
	ops, peak int64
}

func (s *turns) open(b *testing.B, rows int, f func(x, w *T) *T, inScope bool) {
	s.d, s.f, s.inScope = open(b, "cpu:cache=off,explore=wait"), f, inScope
	s.x = millrace.NormalOn(s.d, millrace.Float32, 2, rows, 100)
	s.w = millrace.NormalOn(s.d, millrace.Float32, 1, 100, 100).MulScalar(0.05)
	if s.x.Eval() != nil || s.w.Eval() != nil {
		b.Fatal("no operands")
	}
}

func (s *turns) turn(b *testing.B) {
	collect(b, s.d) // of the last turn
	s.d.ResetPeak()
	before := s.d.Stats()
	start := time.Now()
	var err error
	if s.inScope {
		err = s.d.Scope(func(sc *millrace.Scope) error { return s.pass(sc) })
	} else {
		err = s.pass(s.d)
	}
	if err != nil {
		b.Fatal(err)
	}
	s.ms = append(s.ms, float64(time.Since(start).Nanoseconds())/1e6)
	after := s.d.Stats()
	s.ops, s.peak = after.Ops-before.Ops, after.Runtime.PeakBytes-before.Runtime.AllocBytes
}

func (s *turns) pass(p millrace.Place) error {
	x, w := autodiff.Watch(s.x.To(p)), autodiff.Watch(s.w.To(p))
	g, err := autodiff.Grad(s.f(x, w).Sum(), x, w)
	if err != nil {
		return err
	}
	for _, t := range g {
		if err := t.Eval(); err != nil {
			return err
		}
	}
	return nil
}
