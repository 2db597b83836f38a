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
	firstPaths  = flag.Int("first-paths", 1_000_000, "paths of BenchmarkFirstRun")
	firstDevice = flag.String("first-device", "cpu", "device of BenchmarkFirstRun")
)

// BenchmarkFirstRun compares the processor time of the first run of prices on a new device,
// with a new cache, that of compilers included, with the same where the run waits for the best
// plan. Figures are medians of pairs; the order within them alternates.
//
//	go test ./examples/options -run '^$' -bench FirstRun -benchtime 10x -first-paths 10000000
func BenchmarkFirstRun(b *testing.B) {
	o, err := millrace.ParseOptions(*firstDevice)
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

// first is the processor time of a first run, in seconds.
func first(b *testing.B, o millrace.Options, seed uint64) float64 {
	dev, err := millrace.OpenOptions(o)
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	before := processorTime(b)
	if _, err := prices(dev, today, seed, *firstPaths); err != nil {
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
