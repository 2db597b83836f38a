package stream

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
	_ "github.com/millrace-go/millrace/runtime/null"
)

var sink *[64]byte

// BenchmarkAlloc64 is the yardstick of design Q5: one 64-byte allocation.
func BenchmarkAlloc64(b *testing.B) {
	for b.Loop() {
		sink = new([64]byte)
	}
}

// handle stands for the public Tensor.
type handle struct{ v Value }

// BenchmarkHotOp records and matches ops of a known segment.
func BenchmarkHotOp(b *testing.B) {
	d, err := Open(Options{Device: "null"})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	p := Place{S: d.Default()}
	x := new(handle)
	FromHost(&x.v, p, ir.Float32, ir.Shape{1000}, make([]byte, 4000))
	const ops = 20
	dst := make([]byte, 4000)
	step := func(read bool) {
		sc := d.Default().OpenScope()
		y := x
		for k := range ops {
			op := ir.Mul
			if k%2 == 1 {
				op = ir.Add
			}
			z := new(handle)
			args := [2]Arg{{V: &y.v}, {Bits: 0x3f800000}}
			Record(&z.v, Place{}, op, ir.Invalid, nil, nil, args[:])
			y = z
		}
		if read {
			Read(&y.v, dst)
		}
		sc.Close()
	}
	step(true)
	for name, read := range map[string]bool{"record": false, "step": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step(read)
				if !read { // leave the queue without running it
					s := d.Default()
					s.mu.Lock()
					s.reset()
					s.mu.Unlock()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ops, "ns/op1")
		})
	}
}
