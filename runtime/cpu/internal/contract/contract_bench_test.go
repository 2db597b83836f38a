package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/internal/roofline"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// contractShapes lists rows, columns and k steps. how is the layout of the sides: "t" for y along
// k (as weights of a layer are stored), "x" for x along rows.
var contractShapes = []struct {
	m, n, k int64
	how     string
}{
	{256, 256, 256, ""}, {1024, 1024, 1024, ""}, {2048, 2048, 2048, ""}, {512, 4096, 1024, ""}, {1024, 1024, 1024, "t"}, {1024, 1024, 1024, "x"},
	{1, 4096, 4096, ""}, {1, 4096, 4096, "t"}, {1, 1024, 1024, ""}, {4, 1024, 1024, "t"}, {8, 1024, 1024, ""}, {16, 1024, 1024, "t"}, {16, 1024, 1024, ""}, {1024, 8, 1024, ""}, {1024, 1, 1024, ""},
	{1, 1, 4096, "t"}, {1, 64, 64, ""}, {8, 8, 8, ""}, {16, 16, 16, ""}, {32, 32, 32, ""}, {64, 64, 64, ""}, {64, 64, 64, "t"}, {100, 100, 100, ""}, {128, 128, 128, ""}, {4096, 64, 27, ""}, {1000, 1000, 3, ""}, {333, 517, 777, "t"},
}

// BenchmarkContract runs all contractors and the peak measurement in turns on one thread, and
// reports medians of gflops.
func BenchmarkContract(b *testing.B) { benchmarkContract(b, 1) }

// BenchmarkContract2 is BenchmarkContract on two threads.
func BenchmarkContract2(b *testing.B) { benchmarkContract(b, 2) }

func benchmarkContract(b *testing.B, threads int) {
	all := contractors(threads)
	var names []string
	for name := range all {
		if name != "go" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	most := roofOf(b, threads)
	for _, s := range contractShapes {
		b.Run(fmt.Sprintf("%dx%dx%d%s", s.m, s.k, s.n, s.how), func(b *testing.B) {
			memory := func(n int64) unsafe.Pointer {
				var m memory.Arena
				p := m.Reserve(n * 4)
				if p == nil {
					b.Fatal("no memory")
				}
				b.Cleanup(m.Free)
				list := unsafe.Slice((*float32)(p), n)
				for i := range list {
					list[i] = float32(i%13) - 5.5
				}
				return p
			}
			c := &Contraction{M: s.m, N: s.n, K: s.k, DT: ir.Float32, Out: Results{Base: memory(s.m * s.n), Row: s.n},
				X: Side{Base: memory(s.m * s.k), Stride: s.k, KStride: 1}, Y: Side{Base: memory(s.k * s.n), Stride: 1, KStride: s.n}}
			if strings.Contains(s.how, "t") {
				c.Y.Stride, c.Y.KStride = s.k, 1
			}
			if strings.Contains(s.how, "x") {
				c.X.Stride, c.X.KStride = 1, s.m
			}
			flops := 2 * float64(s.m) * float64(s.n) * float64(s.k)
			some := max(int(1e5/flops), 1)
			times := map[string][]float64{}
			for b.Loop() {
				times["roof"] = append(times["roof"], 1/most())
				for _, name := range names {
					t0 := time.Now()
					for range some {
						if err := all[name].contract(c, Memory, Memory, false); err != nil {
							b.Fatal(err)
						}
					}
					times[name] = append(times[name], float64(time.Since(t0).Nanoseconds())/float64(some)/flops)
				}
			}
			for name, t := range times {
				slices.Sort(t)
				b.ReportMetric(1/t[len(t)/2], strings.ReplaceAll(name, " ", "-"))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// roofOf returns a function that measures the peak of so many threads, in gflops.
func roofOf(b *testing.B, threads int) func() float64 {
	r, err := roofline.New()
	if err != nil {
		return func() float64 { return 1 }
	}
	return func() float64 {
		ops, took := r.MultiplyAdd(threads, 4, time.Millisecond)
		return ops / float64(took.Nanoseconds())
	}
}
