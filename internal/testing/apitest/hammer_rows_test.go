package apitest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestHammerRows: row kernels and contractions from ten goroutines. The softmax of rows of equal
// numbers is known exactly if their length is a power of two, and so are products of whole numbers.
func TestHammerRows(t *testing.T) {
	t.Parallel()
	dev := openSpec(t, "cpu:compile=background,threads=2")
	weight := millrace.OnesOn(dev, millrace.Float32, 16, 8)
	inMemory(t, weight)
	for name, stream := range streamsOf(dev) {
		t.Run(name, func(t *testing.T) {
			hammer(t, ways, dev, stream, func(s *millrace.Stream, rng *rand.Rand) error {
				n, rows := float64(1+rng.IntN(9)), 1+rng.IntN(40)
				return s.Scope(func(sc *millrace.Scope) error {
					x := millrace.FullOn(sc, millrace.Float32, n, rows, 16)
					y := x.MatMul(weight) // 16n
					p := y.Softmax(-1).MulScalar(8).Mul(y)
					if rng.IntN(2) == 0 {
						y.Release()
					}
					own := x.Sub(x.MaxKeep(-1)).Exp()
					own = own.Div(own.SumKeep(-1)).MulScalar(16)
					norm := x.LayerNorm(nil, nil, 1e-5)
					if err := wantAll(own, rows*16, 1); err != nil {
						return fmt.Errorf("softmax by hand: %w", err)
					}
					if err := wantAll(norm, rows*16, 0); err != nil {
						return fmt.Errorf("layernorm: %w", err)
					}
					if err := wantAll(x.MatMul(weight).AddScalar(1).Sum(-1), rows, float32(8*(16*n+1))); err != nil {
						return fmt.Errorf("sum of a product: %w", err)
					}
					if err := wantAll(p, rows*8, float32(16*n)); err != nil {
						return fmt.Errorf("softmax of a product: %w", err)
					}
					return nil
				})
			})
		})
	}
}
