//go:build cgo && unix

package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// BenchmarkPools has both pools run the same function of C, in turns: launches one after
// another, and such for which threads have to be woken. It reports medians.
func BenchmarkPools(b *testing.B) {
	d := openTest(b, runtime.Config{Tier: -1, Threads: 2})
	k := waveKernels()[0]
	for _, points := range []int64{80 << 10, 400 << 10, 3200 << 10} {
		for _, pause := range []time.Duration{0, time.Millisecond} {
			b.Run(fmt.Sprintf("points=%d/pause=%v", points, pause), func(b *testing.B) {
				h := kerneltest.NewLaunch(rand.New(rand.NewPCG(17, 5)), k, []int64{points}, 1, kerneltest.Dense)
				bound(b, d, k, h, func(l *runtime.Launch) {
					r, err := d.prepareFor(l, 2)
					if err != nil {
						b.Fatal(err)
					}
					pair, err := newPairedLaunch(&r, 2)
					if err != nil {
						b.Fatal(err)
					}
					defer pair.close()
					p := newPool(2)
					defer p.close()
					var inC, inGo []time.Duration
					for b.Loop() {
						inC = append(inC, someLaunches(pause, pair.inC)...)
						inGo = append(inGo, someLaunches(pause, func() { p.split(int(r.threads), r.total, r.grain(2), pair) })...)
					}
					c, g := median(inC), median(inGo)
					b.ReportMetric(float64(c.Nanoseconds())/1e3, "us/C")
					b.ReportMetric(float64(g.Nanoseconds())/1e3, "us/Go")
					b.ReportMetric(float64(g)/float64(c), "Go/C")
					b.ReportMetric(0, "ns/op")
				})
			})
		}
	}
}

// someLaunches are times of launches once the other pool's threads are asleep.
func someLaunches(pause time.Duration, launch func()) []time.Duration {
	time.Sleep(time.Millisecond)
	if pause == 0 { // whose threads are awake
		launch()
	}
	var times []time.Duration
	for range 20 {
		time.Sleep(pause)
		begin := time.Now()
		launch()
		times = append(times, time.Since(begin))
	}
	return times
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
