package calls_test

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// TestHotOpAllocatesOnce checks that recording an op of known code allocates only the result: not
// the operands, nor the attributes of elementwise ops.
func TestHotOpAllocatesOnce(t *testing.T) {
	dev := openCPU(t, "cpu:tier=0,threads=1,explore=wait") // a search allocates, too
	x := millrace.FromSliceOn(dev, make([]float32, 100))
	y := millrace.FromSliceOn(dev, make([]float32, 100))
	m := millrace.FromSliceOn(dev, make([]bool, 100))
	out := make([]float32, 100)
	const rounds = 10
	for _, c := range []struct {
		name string
		op   func(a *tensor) *tensor
	}{
		{"scalar", func(a *tensor) *tensor { return a.AddScalar(1) }},
		{"left scalar", func(a *tensor) *tensor { return a.ScalarSub(1) }},
		{"binary", func(a *tensor) *tensor { return a.Mul(y) }},
		{"unary", func(a *tensor) *tensor { return a.Abs() }},
		{"where", func(a *tensor) *tensor { return millrace.Where(m, a, y) }},
		{"clamp", func(a *tensor) *tensor { return a.ClampScalar(-1, 1) }},
	} {
		step := func(n int) func() {
			return func() {
				a := x
				for range n {
					a = c.op(a)
				}
				if err := millrace.ReadInto(out, a); err != nil {
					t.Fatal(err)
				}
			}
		}
		few, many := step(rounds), step(2*rounds)
		for range 3 { // make the plans known and warm up the pool
			few()
			many()
		}
		// Both numbers include the cost of running; their difference is the cost of recording.
		perOp := (testing.AllocsPerRun(50, many) - testing.AllocsPerRun(50, few)) / rounds
		if perOp > hotOpAllocations {
			t.Errorf("%s: %.1f allocations for each op", c.name, perOp)
		}
	}
}

func BenchmarkHotOp(b *testing.B) {
	dev := openCPU(b, "cpu:tier=0,threads=1")
	x := millrace.FromSliceOn(dev, make([]float32, 100))
	out := make([]float32, 100)
	const n = 20
	b.ReportAllocs()
	for b.Loop() {
		a := x
		for i := range n {
			if i%2 == 0 {
				a = a.MulScalar(1.5)
			} else {
				a = a.AddScalar(0.5)
			}
		}
		if err := millrace.ReadInto(out, a); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/tensor-op")
}
