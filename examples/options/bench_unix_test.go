//go:build unix

package main

import (
	"flag"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

var (
	benchPaths  = flag.Int("paths", 1_000_000, "paths of the benchmarks")
	benchDevice = flag.String("device", "cpu", "device of the benchmarks")
)

// BenchmarkFirstRun compares the processor time of the first run of prices on a new device,
// with a new cache, that of compilers included, with the same where the run waits for the best
// plan. Figures are medians of pairs; the order within them alternates.
//
//	go test ./examples/options -run '^$' -bench FirstRun -benchtime 10x -paths 10000000
func BenchmarkFirstRun(b *testing.B) {
	o, err := millrace.ParseOptions(*benchDevice)
	if err != nil {
		b.Fatal(err)
	}
	modes := [2]millrace.ExploreMode{millrace.ExploreBackground, millrace.ExploreWait}
	var took [2][]float64
	var ratios []float64
	for i := range b.N {
		var pair [2]float64
		for k := range modes {
			k = (k + i) % 2
			o.Explore, o.Cache = modes[k], b.TempDir()
			pair[k] = first(b, o, uint64(i))
			took[k] = append(took[k], pair[k])
		}
		ratios = append(ratios, pair[0]/pair[1])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took[0]), "background-s")
	b.ReportMetric(median(took[1]), "wait-s")
	b.ReportMetric(median(ratios), "ratio")
}

// BenchmarkPrices compares prices on a device that has priced before with the plain Go loop, by
// processor time and by the clock. Figures are medians of rounds in which each runs once.
//
//	go test ./examples/options -run '^$' -bench Prices -benchtime 10x -paths 10000000
func BenchmarkPrices(b *testing.B) {
	dev, err := millrace.Open(*benchDevice)
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	ours := func(seed uint64) {
		if _, err := prices(dev, today, seed, *benchPaths); err != nil {
			b.Fatal(err)
		}
	}
	loop := func(seed uint64) { loopPrices(today, seed, *benchPaths) }
	for range 3 {
		ours(1)
	}
	var used, took [2][]float64
	var ratios []float64
	for i := range b.N {
		for k, f := range []func(uint64){ours, loop} {
			before, at := processorTime(b), time.Now()
			f(uint64(i))
			took[k] = append(took[k], time.Since(at).Seconds())
			used[k] = append(used[k], (processorTime(b) - before).Seconds())
		}
		ratios = append(ratios, used[1][i]/used[0][i])
	}
	b.ReportMetric(0, "ns/op")
	for k, name := range []string{"millrace", "loop"} {
		b.ReportMetric(median(used[k]), name+"-processor-s")
		b.ReportMetric(median(took[k]), name+"-s")
	}
	b.ReportMetric(median(ratios), "loop/millrace")
}

// first is the processor time of a first run, in seconds.
func first(b *testing.B, o millrace.Options, seed uint64) float64 {
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	before := processorTime(b)
	if _, err := prices(dev, today, seed, *benchPaths); err != nil {
		b.Fatal(err)
	}
	return (processorTime(b) - before).Seconds()
}

// processorTime is that of this process and of the compilers that it waited for.
func processorTime(b *testing.B) (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
