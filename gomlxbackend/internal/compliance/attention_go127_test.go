//go:build go1.27 && !compute_go126

package compliance

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// bools is n random ones, of which most are true. Those of the first row are false.
func bools(r *rand.Rand, n, row int) []bool {
	list := make([]bool, n)
	for i := row; i < n; i++ {
		list[i] = r.IntN(4) > 0
	}
	return list
}

// Attention in both layouts, with heads that share keys, masks of both kinds, lengths, and the
// triangle of a causal one.
func TestAttentionAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(91, 92))
	const batch, queries, keys, width = 2, 5, 7, 6
	for dt, tol := range map[dtypes.DType]float64{dtypes.Float32: 2e-6, dtypes.Float64: 1e-14} {
		for _, heads := range [][2]int{{1, 1}, {4, 4}, {4, 2}, {6, 1}} {
			for _, l := range []compute.AttentionAxesLayout{compute.AttentionAxesLayoutBHSD, compute.AttentionAxesLayoutBSHD} {
				of := func(heads, length int) []int {
					if l == compute.AttentionAxesLayoutBSHD {
						return []int{batch, length, heads, width}
					}
					return []int{batch, heads, length, width}
				}
				masked := func(batch, heads int) []int {
					d := of(heads, queries)
					d[0], d[3] = batch, keys
					return d
				}
				given := func(dims []int) arg {
					n := 1
					for _, d := range dims {
						n *= d
					}
					return arg{uniform(r, dt, n), dims}
				}
				q, k, v := given(of(heads[0], queries)), given(of(heads[1], keys)), given(of(heads[1], keys))
				hidden := func(dims []int) arg {
					a := given(dims)
					return arg{bools(r, reflect.ValueOf(a.flat).Len(), keys), a.dims}
				}
				lengths := []arg{{[]int32{3, 5}, []int{batch}}, {[]int32{7, 0}, []int{batch}}}
				for name, c := range map[string]struct {
					more   []arg
					config func(in []compute.Value) *compute.ScaledDotProductAttentionConfig
				}{
					"plain": {nil, func([]compute.Value) *compute.ScaledDotProductAttentionConfig { return nil }},
					"causal": {nil, func([]compute.Value) *compute.ScaledDotProductAttentionConfig {
						return &compute.ScaledDotProductAttentionConfig{Causal: true, Scale: 0.3}
					}},
					"added": {[]arg{given(masked(1, heads[0]))}, func(in []compute.Value) *compute.ScaledDotProductAttentionConfig {
						return &compute.ScaledDotProductAttentionConfig{Mask: in[0]}
					}},
					"hidden": {[]arg{hidden(masked(batch, 1))}, func(in []compute.Value) *compute.ScaledDotProductAttentionConfig {
						return &compute.ScaledDotProductAttentionConfig{Mask: in[0]}
					}},
					"hidden, three axes": {[]arg{hidden([]int{batch, queries, keys})}, func(in []compute.Value) *compute.ScaledDotProductAttentionConfig {
						return &compute.ScaledDotProductAttentionConfig{Mask: in[0], Causal: true}
					}},
					"lengths": {lengths, func(in []compute.Value) *compute.ScaledDotProductAttentionConfig {
						return &compute.ScaledDotProductAttentionConfig{QuerySeqLen: in[0], KeyValueSeqLen: in[1], Causal: true}
					}},
					"bias": {[]arg{given([]int{queries, keys})}, func(in []compute.Value) *compute.ScaledDotProductAttentionConfig {
						return &compute.ScaledDotProductAttentionConfig{Bias: in[0], Causal: true}
					}},
				} {
					t.Run(fmt.Sprint(name, "/", dt, heads, l), func(t *testing.T) {
						closeTo(t, b, ref, 8*tol, append([]arg{q, k, v}, c.more...), func(f compute.Function, in []compute.Value) (compute.Value, error) {
							out, states, err := f.FusedScaledDotProductAttention(in[0], in[1], in[2], l, c.config(in[3:]))
							if len(states) != 0 {
								t.Errorf("%d states", len(states))
							}
							return out, err
						})
					})
				}
			}
		}
	}
}
