package gputest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// heads holds operands of an attention; its result is computed by loops in float64. groups is the
// number of query heads that share a key head.
type heads struct {
	batch, n, heads, groups, d int
	causal                     bool
	q, k, v                    []float32
}

func newHeads(rng *rand.Rand, h heads) *heads {
	fill := func(heads int) []float32 {
		s := make([]float32, h.batch*heads*h.n*h.d)
		for i := range s {
			s[i] = float32(rng.NormFloat64())
		}
		return s
	}
	h.q, h.k, h.v = fill(h.heads), fill(h.heads/h.groups), fill(h.heads/h.groups)
	return &h
}

func (h *heads) want() []float64 {
	out := make([]float64, len(h.q))
	p := make([]float64, h.n)
	for bh := range h.batch * h.heads {
		kv := (bh/h.heads*(h.heads/h.groups) + bh%h.heads/h.groups) * h.n * h.d
		for i := range h.n {
			q := h.q[(bh*h.n+i)*h.d:][:h.d]
			top, sum := math.Inf(-1), 0.0
			for j := range h.n {
				p[j] = 0
				for c, x := range q {
					p[j] += float64(x) * float64(h.k[kv+j*h.d+c])
				}
				if p[j] /= math.Sqrt(float64(h.d)); h.causal && j > i {
					p[j] = math.Inf(-1)
				}
				top = max(top, p[j])
			}
			for j := range p {
				p[j] = math.Exp(p[j] - top)
				sum += p[j]
			}
			for j := range p {
				for c := range h.d {
					out[(bh*h.n+i)*h.d+c] += p[j] / sum * float64(h.v[kv+j*h.d+c])
				}
			}
		}
	}
	return out
}

// run computes softmax(q·kᵀ/√d)·v by public ops, in a scope, with -Inf where mask, if any, is true.
func (h *heads) run(d *millrace.Device, mask *millrace.Tensor) (got []float32, err error) {
	kv := []int{h.batch, h.heads / h.groups, 1, h.n, h.d}
	q := millrace.FromSliceOn(d, h.q, h.batch, h.heads/h.groups, h.groups, h.n, h.d)
	k, v := millrace.FromSliceOn(d, h.k, kv...), millrace.FromSliceOn(d, h.v, kv...)
	defer func() { q.Release(); k.Release(); v.Release() }()
	err = d.Scope(func(sc *millrace.Scope) error {
		s := q.To(sc).MatMul(k.Permute(0, 1, 2, 4, 3)).MulScalar(1 / math.Sqrt(float64(h.d)))
		if mask != nil {
			s = s.MaskedFill(mask, math.Inf(-1))
		}
		got, err = millrace.Values[float32](s.Softmax(-1).MatMul(v))
		return err
	})
	return got, err
}

// testEngineChains: an attention of public ops runs in tiles: a plan with three kernels, without
// memory for all of its scores.
func testEngineChains(t *testing.T) {
	for name, h := range map[string]*heads{
		"plain":   newHeads(rand.New(rand.NewPCG(1, 1)), heads{batch: 2, heads: 3, groups: 1, n: 320, d: 16}),
		"causal":  newHeads(rand.New(rand.NewPCG(1, 2)), heads{batch: 2, heads: 3, groups: 1, n: 320, d: 16, causal: true}),
		"grouped": newHeads(rand.New(rand.NewPCG(1, 3)), heads{batch: 1, heads: 6, groups: 3, n: 320, d: 16, causal: true}),
	} {
		t.Run(name, func(t *testing.T) {
			d := openEngine(t)
			want := h.want()
			var mask *millrace.Tensor
			if h.causal {
				i := millrace.ArangeOn(d, millrace.Int32, 0, float64(h.n), 1)
				mask = i.Gt(i.Unsqueeze(-1))
				must(t, mask.Eval())
			}
			for pass := range 2 {
				d.ResetPeak()
				before := d.Stats()
				got, err := h.run(d, mask)
				must(t, err)
				for i, w := range want {
					if e := math.Abs(float64(got[i]) - w); !(e < 1e-5) {
						t.Fatalf("pass %d: element %d is %v, want %v", pass, i, got[i], w)
					}
				}
				after := d.Stats()
				if n := after.Fallbacks - before.Fallbacks; n != 0 {
					t.Errorf("pass %d: %d fallbacks", pass, n)
				}
				if n := after.Kernels - before.Kernels; n != 3 {
					t.Errorf("pass %d: %d kernels, want 3", pass, n)
				}
				operands := int64(4 * (len(h.q) + len(h.k) + len(h.v) + len(got)))
				scores := int64(4 * h.batch * h.heads * h.n * h.n)
				if n := after.Runtime.PeakBytes - before.Runtime.AllocBytes - operands; n >= scores {
					t.Errorf("pass %d: %d bytes at once beside the operands; the scores are %d", pass, n, scores)
				}
				if n := after.Runtime.Compiles - before.Runtime.Compiles; pass > 0 && n != 0 {
					t.Errorf("pass %d: %d compiles", pass, n)
				}
			}
		})
	}
}
