package dist

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// TestSums: each dtype of tensors has a sum, but for bool.
func TestSums(t *testing.T) {
	for dt := range ir.NumDTypes {
		if dt.Tensor() && (sums[dt] != nil) == (dt == millrace.Bool) {
			t.Errorf("%v: there is a sum: %v", dt, sums[dt] != nil)
		}
	}
}

// TestRoundedOnce: 1 + u + u, with u half of the last bit of 1, is rounded once.
func TestRoundedOnce(t *testing.T) {
	one, u := millrace.NewBF16(1), millrace.NewBF16(1.0/256)
	parts := make([][]byte, 3)
	for r, x := range []millrace.BF16{u, u, one} {
		parts[r] = aligned(2)
		as[millrace.BF16](parts[r])[0] = x
	}
	dst := aligned(2)
	sums[millrace.BFloat16](dst, parts)
	if got := as[millrace.BF16](dst)[0].Float32(); got != 1+1.0/128 {
		t.Errorf("the sum is %v", got)
	}
}

func BenchmarkSum(b *testing.B) {
	const n = 1 << 20
	for _, dt := range []millrace.DType{millrace.Float32, millrace.BFloat16} {
		b.Run(dt.String(), func(b *testing.B) {
			parts := [][]byte{aligned(n), aligned(n)}
			dst := aligned(n)
			b.SetBytes(n)
			for b.Loop() {
				sums[dt](dst, parts)
			}
		})
	}
}
