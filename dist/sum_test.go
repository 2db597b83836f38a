package dist

import (
	"math"
	"math/rand/v2"
	"slices"
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

// TestRoundedEach: a step's sum of bfloat16 has the bits of additions that are rounded each, so parts
// of it may be added before.
func TestRoundedEach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 4, 5, 8} {
		parts, want := make([][]byte, n), make([][]millrace.BF16, n)
		for i := range parts {
			parts[i] = aligned(2 * 3000)
			for k := range as[millrace.BF16](parts[i]) {
				as[millrace.BF16](parts[i])[k] = millrace.NewBF16(float32(r.NormFloat64() * math.Pow(4, float64(i))))
			}
			want[i] = slices.Clone(as[millrace.BF16](parts[i]))
		}
		for len(want) > 1 {
			var next [][]millrace.BF16
			for i := 0; i < len(want); i += 2 {
				next = append(next, want[i])
				if i+1 < len(want) {
					for k, x := range want[i+1] {
						want[i][k] = millrace.NewBF16(want[i][k].Float32() + x.Float32())
					}
				}
			}
			want = next
		}
		dst := aligned(2 * 3000)
		stepSum(millrace.BFloat16)(dst, parts)
		if !slices.Equal(as[millrace.BF16](dst), want[0]) {
			t.Errorf("%d parts: other bits", n)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	const n = 1 << 20
	for name, sum := range map[string]func(dst []byte, parts [][]byte){
		"float32": sums[millrace.Float32], "bfloat16": sums[millrace.BFloat16], "bfloat16 of steps": stepSum(millrace.BFloat16),
	} {
		b.Run(name, func(b *testing.B) {
			parts := [][]byte{aligned(n), aligned(n)}
			dst := aligned(n)
			b.SetBytes(n)
			for b.Loop() {
				sum(dst, parts)
			}
		})
	}
}
