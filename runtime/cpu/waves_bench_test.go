package cpu

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// BenchmarkWaves compares a list of independent launches with the same list in which each launch
// depends on the one before: w - lr·m on a hundred parameters of n elements, and n by n products.
func BenchmarkWaves(b *testing.B) {
	for _, c := range []struct {
		name    string
		which   int
		n       int64
		count   int
		threads int
	}{
		{"updates/16", 0, 4, 100, 2}, {"updates/1K", 0, 32, 100, 2}, {"updates/4K", 0, 64, 100, 2}, {"updates/64K", 0, 256, 100, 2},
		{"updates/256K", 0, 512, 20, 2}, {"products/16", 2, 16, 6, 2}, {"products/64", 2, 64, 6, 2}, {"products/128", 2, 128, 6, 2},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := openTest(b, runtime.Config{Tier: 1, Threads: c.threads})
			k := waveKernels()[c.which]
			if c.which == 0 {
				k.Body[3].Op = ir.Abs // an update with more work
			}
			p, err := d.Build(k)
			if err != nil {
				b.Fatal(err)
			}
			var list, chain []runtime.Launch
			for range c.count {
				var bufs [3]runtime.Buffer
				for i := range bufs {
					if bufs[i], err = d.Alloc(c.n * c.n * 4); err != nil {
						b.Fatal(err)
					}
					defer d.Free(bufs[i])
					if err := d.Write(bufs[i], ir.Float32, 0, make([]byte, c.n*c.n*4)); err != nil {
						b.Fatal(err)
					}
				}
				list = append(list, waveLaunch(p, c.which, c.n, bufs[0], bufs[1], bufs[2]))
				l := waveLaunch(p, c.which, c.n, bufs[0], bufs[1], bufs[2])
				if n := len(chain); n > 0 {
					l.Args[1].Buf = chain[n-1].Args[2].Buf
				}
				chain = append(chain, l)
			}
			run := func(l []runtime.Launch) float64 {
				begin := time.Now()
				if err := d.Run(slices.Clone(l)); err != nil {
					b.Fatal(err)
				}
				return float64(time.Since(begin).Nanoseconds())
			}
			var apart, together []float64
			run(list)
			if err := d.Wait(true); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				apart, together = append(apart, run(chain)), append(together, run(list))
			}
			b.ReportMetric(paired.Quantile(apart, 0.05)/float64(c.count), "ns/chained")
			b.ReportMetric(paired.Quantile(together, 0.05)/float64(c.count), "ns/free")
			b.ReportMetric(0, "ns/op")
			b.Log(fmt.Sprint(paired.Ratio(together, apart)))
		})
	}
}

// BenchmarkOrder times the search for waves, per launch, in a list that has none.
func BenchmarkOrder(b *testing.B) {
	d := openTest(b, runtime.Config{Tier: -1, Threads: 2})
	p, err := d.Build(waveKernels()[0])
	if err != nil {
		b.Fatal(err)
	}
	const n, count = 64, 256
	var list []runtime.Launch
	var bufs []runtime.Buffer
	for i := range count + 2 {
		buf, err := d.Alloc(n * n * 4)
		if err != nil {
			b.Fatal(err)
		}
		if bufs = append(bufs, buf); i > 1 {
			list = append(list, waveLaunch(p, 0, n, bufs[i-1], bufs[i-2], buf))
		}
	}
	var took []float64
	for b.Loop() {
		begin := time.Now()
		if o := order(list, 2); o != nil {
			b.Fatal("a chain has waves")
		}
		took = append(took, float64(time.Since(begin).Nanoseconds()))
	}
	b.ReportMetric(paired.Quantile(took, 0.1)/count, "ns/launch")
	b.ReportMetric(0, "ns/op")
}
