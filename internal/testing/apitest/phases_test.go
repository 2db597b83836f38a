package apitest

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestLongRowsAreComputedOnce: some values take long to compute and are folded twice, as for a
// mean and a standard deviation. They are written if their row fits in no cache. A short row is
// one kernel, which keeps them. The bits are the same.
func TestLongRowsAreComputedOnce(t *testing.T) {
	for _, c := range []struct {
		n       int
		kernels int64
		written int64 // elements, besides the two results; the one more is the variance
	}{{1 << 20, 2, 1<<20 + 1}, {1 << 10, 1, 0}} {
		var bits [2][2]uint32
		for i, spec := range []string{"cpu:explore=wait,cache=off", "cpu:explore=wait,cache=off,fusion=off"} {
			d := openSpec(t, spec)
			z := millrace.NormalOn(d, millrace.Float32, 5, c.n)
			p := z.MulScalar(0.2).Exp().SubScalar(1).Relu()
			mean, std := p.Mean(), p.Std(1)
			p.Release()
			z.Release()
			before := d.Stats()
			for j, x := range []*millrace.Tensor{mean, std} {
				v, err := millrace.Item[float32](x)
				if err != nil {
					t.Fatal(err)
				}
				bits[i][j] = math.Float32bits(v)
			}
			after := d.Stats()
			kernels, written := after.Kernels-before.Kernels, (after.Runtime.BytesWritten-before.Runtime.BytesWritten)/4-2
			if i == 0 && (kernels != c.kernels || written != c.written) {
				t.Errorf("%d elements: %d kernels that write %d elements, want %d and %d", c.n, kernels, written, c.kernels, c.written)
			}
		}
		if bits[0] != bits[1] {
			t.Errorf("%d elements: bits %x fused, %x not", c.n, bits[0], bits[1])
		}
	}
}
