package stream

import (
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
	_ "github.com/millrace-go/millrace/runtime/null"
)

var sink *[64]byte

// handle stands for the public Tensor.
type handle struct{ v Value }

const (
	hotOps   = 60  // ops per segment, between two readings of the clock
	hotRound = 100 // the allocations of so many segments are timed together
)

// BenchmarkHotOp records and matches ops of a known segment: alone, inside a scope (whose end is
// not counted), and with the run and read at the end. It compares them with design Q5's
// yardstick, one 64-byte heap allocation. The two are timed in turns, so a slow moment of the
// machine slows both.
func BenchmarkHotOp(b *testing.B) {
	for _, c := range []struct {
		name         string
		scoped, read bool
	}{{"record", false, false}, {"scoped", true, false}, {"step", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			d, err := Open(device.Options{Device: "null"})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			s := d.Default()
			host := new(handle)
			FromHost(&host.v, Place{S: s}, ir.Float32, ir.Shape{1000}, make([]byte, 4000))
			dst := make([]byte, 4000)
			step := func(read bool) time.Duration {
				x := host
				if !read { // empty the queue without running it
					defer func() {
						s.mu.Lock()
						s.reset()
						s.mu.Unlock()
					}()
				}
				if c.scoped {
					sc := s.OpenScope()
					defer sc.Close()
					x = new(handle)
					To(&x.v, Place{S: s, Scope: sc}, &host.v)
				}
				start := time.Now()
				y := hotChain(x)
				if read {
					Read(&y.v, dst)
				}
				return time.Since(start)
			}
			step(true)
			b.ReportAllocs()
			var ops, allocs time.Duration
			n := 0
			for b.Loop() {
				if n++; n%hotRound == 0 {
					start := time.Now()
					for range hotRound * hotOps {
						sink = new([64]byte)
					}
					allocs += time.Since(start)
				}
				ops += step(c.read)
			}
			if n -= n % hotRound; n == 0 {
				return
			}
			per := float64(ops.Nanoseconds()) / float64(b.N*hotOps)
			b.ReportMetric(per, "ns/tensor-op")
			b.ReportMetric(per/(float64(allocs.Nanoseconds())/float64(n*hotOps)), "x-alloc64")
		})
	}
}

// apply is the function that the public elementwise ops call.
func apply(dst *Value, op ir.Op, args []Arg) { Apply(dst, op, args) }

func hotChain(x *handle) *handle {
	for k := range hotOps {
		op := ir.Mul
		if k%2 == 1 {
			op = ir.Add
		}
		y := new(handle)
		args := [2]Arg{{V: &x.v}, {Bits: 0x3f800000}}
		apply(&y.v, op, args[:])
		x = y
	}
	return x
}
