package stream

import (
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
)

// BenchmarkRelease releases the results of a known segment: first pending results, as a program
// releases each after its last use, then tensors in memory, whose buffers return to the pool.
// Recording an op takes 40 to 60 ns. The case "scope" opens and closes a scope that owns nothing.
func BenchmarkRelease(b *testing.B) {
	d, err := Open(device.Options{Device: "null"})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s := d.Default()
	host := new(handle)
	FromHost(&host.v, Place{S: s}, ir.Float32, ir.Shape{1000}, make([]byte, 4000))
	dst := make([]byte, 4000)
	var made [hotOps / 2]*handle // with their releases, the items of a queue that is not cut
	timed := func(b *testing.B, step func() time.Duration) {
		step()
		b.ReportAllocs()
		var spent time.Duration
		for b.Loop() {
			spent += step()
		}
		b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*len(made)), "ns/release")
	}
	b.Run("pending", func(b *testing.B) {
		timed(b, func() time.Duration {
			x := host
			for k := range made {
				op := ir.Mul
				if k%2 == 1 {
					op = ir.Add
				}
				y := new(handle)
				args := [2]Arg{{V: &x.v}, {Bits: 0x3f800000}}
				apply(&y.v, op, args[:])
				made[k], x = y, y
			}
			start := time.Now()
			for _, h := range made[:len(made)-1] {
				Release(&h.v)
			}
			spent := time.Since(start)
			if err := Read(&x.v, dst); err != nil {
				b.Fatal(err)
			}
			return spent
		})
	})
	b.Run("ready", func(b *testing.B) {
		timed(b, func() time.Duration {
			for k := range made {
				made[k] = new(handle)
				FromHost(&made[k].v, Place{S: s}, ir.Float32, ir.Shape{8}, dst[:32])
			}
			start := time.Now()
			for _, h := range made {
				Release(&h.v)
			}
			return time.Since(start)
		})
	})
	b.Run("scope", func(b *testing.B) {
		timed(b, func() time.Duration {
			start := time.Now()
			for range made {
				s.OpenScope().Close()
			}
			return time.Since(start)
		})
	})
}
