//go:build openblas && cgo

package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// BenchmarkContractOpenBLAS compares square products and a few skinny ones with OpenBLAS's sgemm
// on the same threads, in turns, and reports the median ratio of adjacent runs. The first of each
// pair alternates.
func BenchmarkContractOpenBLAS(b *testing.B) {
	const threads = 2
	for _, s := range [][3]int64{{256, 256, 256}, {1024, 1024, 1024}, {2048, 2048, 2048}, {512, 4096, 1024}, {1, 4096, 4096}, {16, 2048, 2048}, {4096, 1, 4096}, {64, 64, 64}} {
		for _, transposed := range []bool{false, true} {
			m, n, k := s[0], s[1], s[2]
			b.Run(fmt.Sprintf("%dx%dx%d/transposed=%v", m, n, k, transposed), func(b *testing.B) {
				run := contractors(threads)["go "+machine.Level().String()]
				rng := rand.New(rand.NewPCG(1, 2))
				floats := func(n int64) []float32 {
					f := make([]float32, n)
					for i := range f {
						f[i] = rng.Float32() - 0.5
					}
					return f
				}
				x, y, got, want := floats(m*k), floats(k*n), floats(m*n), floats(m*n)
				c := &Contraction{M: m, N: n, K: k, DT: ir.Float32, Out: Results{Base: unsafe.Pointer(&got[0]), Row: n},
					X: Side{Base: unsafe.Pointer(&x[0]), Stride: k, KStride: 1}, Y: Side{Base: unsafe.Pointer(&y[0]), Stride: 1, KStride: n}}
				if transposed {
					c.Y.Stride, c.Y.KStride = k, 1
				}
				flops := float64(2 * m * n * k)
				repeat := max(int(2e8/flops), 1)
				both := [2]func(){
					func() {
						if err := run.contract(c, Memory, Memory, false); err != nil {
							b.Fatal(err)
						}
					},
					func() {
						sgemm(threads, transposed, m, n, k, unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&want[0]))
					},
				}
				var times [2]float64
				var ratios, rates []float64
				for i := 0; b.Loop(); i++ {
					for turn := range 2 {
						who := (i + turn) % 2
						both[who]() // wakes its threads, fills its caches
						start := time.Now()
						for range repeat {
							both[who]()
						}
						times[who] = time.Since(start).Seconds() / float64(repeat)
					}
					ratios = append(ratios, times[1]/times[0])
					rates = append(rates, flops/times[0]*1e-9)
				}
				for i := range got {
					if d := math.Abs(float64(got[i] - want[i])); d > 1e-5*float64(k) {
						b.Fatalf("element %d is %v, OpenBLAS has %v", i, got[i], want[i])
					}
				}
				slices.Sort(ratios)
				slices.Sort(rates)
				b.ReportMetric(rates[len(rates)/2], "gflops")
				b.ReportMetric(ratios[len(ratios)/2], "vs_openblas")
			})
		}
	}
}
