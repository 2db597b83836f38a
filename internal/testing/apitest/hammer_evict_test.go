package apitest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
)

// evictOps are selected by a program's digits, with their effect on a number.
var evictOps = [5]struct {
	on func(*tensor) *tensor
	of func(float32) float32
}{
	{func(x *tensor) *tensor { return x.AddScalar(1) }, func(v float32) float32 { return v + 1 }},
	{func(x *tensor) *tensor { return x.Neg() }, func(v float32) float32 { return -v }},
	{func(x *tensor) *tensor { return x.Mul(x) }, func(v float32) float32 { return v * v }},
	{func(x *tensor) *tensor { return x.Neg().AddScalar(3) }, func(v float32) float32 { return 3 - v }},
	{func(x *tensor) *tensor { return x.Abs() }, func(v float32) float32 { return max(v, -v) }},
}

// TestHammerEvictions: fifty times as many programs as kept plans. Plans are dropped, with their
// programs and compiled objects, while other goroutines run them, wait for results to be recomputed
// by them, and run recordings made with them.
func TestHammerEvictions(t *testing.T) {
	testhook.SetPlans(12)
	dev := open(t, millrace.Options{})
	testhook.SetPlans(0)
	t.Parallel() // not before: other tests open devices
	chain := func(x *tensor, v float32, program int) (*tensor, *tensor, float32, float32) {
		between, was := x, v
		for i := range 4 {
			op := evictOps[program%5]
			if x, v = op.on(x), op.of(v); i == 1 {
				between, was = x, v
			}
			program /= 5
		}
		return x, between, v, was
	}
	for name, stream := range streamsOf(dev) {
		t.Run(name, func(t *testing.T) {
			recs := make([]*millrace.Recording, 8)
			for i := range recs {
				recs[i] = millrace.NewRecording(func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
					y, _, _, _ := chain(in[0], 0, 78*i)
					return []*tensor{y}, nil
				}, millrace.Axes{"n"})
			}
			hammer(t, ways, dev, stream, func(s *millrace.Stream, rng *rand.Rand) error {
				n, a, program := 1+rng.IntN(40), float32(rng.IntN(4)), rng.IntN(625)
				x := millrace.FullOn(s, millrace.Float32, float64(a), n)
				y, between, v, was := chain(x, a, program)
				if err := wantAll(y, n, v); err != nil {
					return fmt.Errorf("program %d: %w", program, err)
				}
				if rng.IntN(2) == 0 { // it was not written, and its plan may be dropped
					if err := wantAll(between, n, was); err != nil {
						return fmt.Errorf("within program %d: %w", program, err)
					}
				}
				if name == "one" || rng.IntN(4) > 0 {
					return nil // a recording has its stream to itself
				}
				own := dev.NewStream()
				i := rng.IntN(len(recs))
				out, err := recs[i].Run(nil, millrace.FullOn(own, millrace.Float32, float64(a), n))
				if err != nil {
					return err
				}
				_, _, v, _ = chain(x, a, 78*i)
				return wantAll(out[0], n, v)
			})
		})
	}
	if s := dev.Stats(); s.Evictions < 50 || s.Plans > 12 {
		t.Errorf("%d plans were evicted, %d are kept", s.Evictions, s.Plans)
	}
}
