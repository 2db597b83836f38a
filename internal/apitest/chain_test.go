package apitest

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
)

// attention is softmax(q·kᵀ/√d + mask)·v, from public ops.
func attention(q, k, v, mask *millrace.Tensor) *millrace.Tensor {
	d := q.Dim(-1)
	s := q.MatMul(k.Permute(0, 1, 3, 2)).MulScalar(1 / math.Sqrt(float64(d)))
	if mask != nil {
		s = s.Add(mask)
	}
	return s.Softmax(-1).MatMul(v)
}

// causal is 0 on and below the diagonal and -Inf above.
func causal(dev *millrace.Device, n int) *millrace.Tensor {
	ones := millrace.FullOn(dev, millrace.Bool, 1, n, n)
	i := millrace.ArangeOn(dev, millrace.Int32, 0, float64(n), 1)
	return millrace.FullOn(dev, millrace.Float32, 0, n, n).MaskedFill(ones.And(i.Gt(i.Unsqueeze(-1))), math.Inf(-1))
}

// Attention is found, not called: its bits are those of one kernel per op, on
// any tier and with any threads, and its scores are never in memory as a whole.
func TestAttention(t *testing.T) {
	const batch, heads, n, d = 2, 3, 320, 16
	const scores = batch * heads * n * n * 4
	for _, c := range []struct {
		name   string
		groups int // heads that share a key
		masked bool
	}{{"plain", 1, false}, {"causal", 1, true}, {"grouped", 3, true}} {
		t.Run(c.name, func(t *testing.T) {
			run := func(spec string) (bits []float32, peak, kernels int64) {
				dev := openSpec(t, spec)
				q := millrace.NormalOn(dev, millrace.Float32, 1, batch, heads, n, d)
				k := millrace.NormalOn(dev, millrace.Float32, 2, batch, heads/c.groups, n, d)
				v := millrace.NormalOn(dev, millrace.Float32, 3, batch, heads/c.groups, n, d)
				var mask *millrace.Tensor
				inMemory(t, q, k, v)
				if c.masked {
					mask = causal(dev, n)
					inMemory(t, mask)
				}
				for range 2 {
					dev.ResetPeak()
					before := dev.Stats()
					err := dev.Scope(func(sc *millrace.Scope) (err error) {
						bits, err = millrace.Values[float32](attention(q.To(sc), k, v, mask))
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					after := dev.Stats()
					if f := after.Fallbacks - before.Fallbacks; f != 0 {
						t.Errorf("%s: %d fallbacks", spec, f)
					}
					peak, kernels = after.Runtime.PeakBytes-before.Runtime.AllocBytes, after.Kernels-before.Kernels
				}
				return bits, peak, kernels
			}
			want, _, _ := run("cpu:fusion=off,tier=0")
			for _, spec := range []string{"cpu:compile=wait", "cpu:threads=1,tier=0", "cpu:threads=4,tier=0"} {
				got, peak, kernels := run(spec)
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%s: element %d is %v, not %v", spec, i, got[i], want[i])
					}
				}
				if peak >= scores || kernels != 3 {
					t.Errorf("%s: %d kernels, %d bytes at once beside the operands; the scores are %d", spec, kernels, peak, scores)
				}
			}
		})
	}
}
