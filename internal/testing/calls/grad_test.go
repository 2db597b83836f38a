package calls_test

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// TestGradAllocations bounds what an op allocates that is followed, and whose derivative is then
// taken by one further op. Each handle in between would add two: itself, and one when it is
// released. Work in the background allocates, too, so the least of several averages counts.
func TestGradAllocations(t *testing.T) {
	dev := openCPU(t, "cpu:tier=0,threads=1,explore=wait") // a search allocates, too
	x := millrace.FromSliceOn(dev, make([]float32, 100))
	out := make([]float32, 100)
	const rounds = 10
	step := func(n int) func() {
		return func() {
			err := dev.DefaultStream().Scope(func(sc *millrace.Scope) error {
				w := autodiff.Watch(x.To(sc))
				y := w
				for range n {
					y = y.Exp()
				}
				ds, err := autodiff.Grad(y.Sum(), w)
				if err != nil {
					return err
				}
				return millrace.ReadInto(out, ds[0])
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	few, many := step(rounds), step(2*rounds)
	for range 3 { // make the plans known and warm up the pool
		few()
		many()
	}
	least := func(f func()) float64 {
		n := testing.AllocsPerRun(20, f)
		for range 5 {
			n = min(n, testing.AllocsPerRun(20, f))
		}
		return n
	}
	if perOp := (least(many) - least(few)) / rounds; perOp > gradAllocations {
		t.Errorf("an op and its derivative make %.1f allocations", perOp)
	}
}
