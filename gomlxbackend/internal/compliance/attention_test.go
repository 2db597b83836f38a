package compliance

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
)

// A bias of four axes is [batch, heads, queries, keys] in either layout, as compute says: the
// Go backend takes it in the order of the layout.
func TestAttentionBias(t *testing.T) {
	b := open(t, "millrace:cpu")
	// One query and feature, two heads and keys: scores are 0, and the bias chooses a key.
	zeros := func(dims ...int) arg { return arg{make([]float32, 4)[:dims[0]*dims[1]*dims[2]*dims[3]], dims} }
	bias := arg{[]float32{0, -100, -100, 0}, []int{1, 2, 1, 2}}
	for _, c := range []struct {
		layout  compute.AttentionAxesLayout
		q, k, v arg
	}{
		{compute.AttentionAxesLayoutBHSD, zeros(1, 2, 1, 1), zeros(1, 2, 2, 1), arg{[]float32{1, 2, 3, 4}, []int{1, 2, 2, 1}}},
		{compute.AttentionAxesLayoutBSHD, zeros(1, 1, 2, 1), zeros(1, 2, 2, 1), arg{[]float32{1, 3, 2, 4}, []int{1, 2, 2, 1}}},
	} {
		got, _, err := evaluate(b, []arg{c.q, c.k, c.v, bias}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			out, _, err := f.FusedScaledDotProductAttention(in[0], in[1], in[2], c.layout, &compute.ScaledDotProductAttentionConfig{Bias: in[3]})
			return out, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if y := got.([]float32); math.Abs(float64(y[0]-1)) > 1e-6 || math.Abs(float64(y[1]-4)) > 1e-6 {
			t.Errorf("%s: %v, want 1 and 4", c.layout, y)
		}
	}
}

// What does not fit is an error; what has another meaning in GoMLX is declined.
func TestBadAttention(t *testing.T) {
	b := open(t, "millrace:cpu")
	x := func(dims ...int) arg {
		n := 1
		for _, d := range dims {
			n *= d
		}
		return arg{make([]float32, n), dims}
	}
	whole := func(dims ...int) arg { a := x(dims...); return arg{make([]int32, len(a.flat.([]float32))), dims} }
	q := x(1, 2, 3, 4)
	for _, c := range []struct {
		want     string
		args     []arg
		declined bool
		config   func(in []compute.Value) compute.ScaledDotProductAttentionConfig
	}{
		{"four axes", []arg{q, q, x(2, 3, 4)}, false, nil},
		{"multiple", []arg{q, x(1, 3, 3, 4), x(1, 3, 3, 4)}, false, nil},
		{"differ", []arg{q, x(1, 2, 5, 4), x(1, 2, 6, 4)}, false, nil},
		{"Int32", []arg{whole(1, 2, 3, 4), whole(1, 2, 3, 4), whole(1, 2, 3, 4)}, false, nil},
		{"both be given", []arg{q, q, q, whole(1)}, false, func(in []compute.Value) compute.ScaledDotProductAttentionConfig {
			return compute.ScaledDotProductAttentionConfig{QuerySeqLen: in[3]}
		}},
		{"one for each", []arg{q, q, q, whole(2)}, false, func(in []compute.Value) compute.ScaledDotProductAttentionConfig {
			return compute.ScaledDotProductAttentionConfig{QuerySeqLen: in[3], KeyValueSeqLen: in[3]}
		}},
		{"a mask [1 2 3 9] for scores [1 2 3 3]", []arg{q, q, q, x(1, 2, 3, 9)}, false, func(in []compute.Value) compute.ScaledDotProductAttentionConfig {
			return compute.ScaledDotProductAttentionConfig{Mask: in[3]}
		}},
		{"a mask of 2 axes", []arg{q, q, q, x(3, 3)}, true, func(in []compute.Value) compute.ScaledDotProductAttentionConfig {
			return compute.ScaledDotProductAttentionConfig{Mask: in[3]}
		}},
		{"a mask of Int32", []arg{q, q, q, whole(1, 2, 3, 3)}, true, func(in []compute.Value) compute.ScaledDotProductAttentionConfig {
			return compute.ScaledDotProductAttentionConfig{Mask: in[3]}
		}},
		{"a bias of 3 axes", []arg{q, q, q, x(2, 3, 3)}, true, func(in []compute.Value) compute.ScaledDotProductAttentionConfig {
			return compute.ScaledDotProductAttentionConfig{Bias: in[3]}
		}},
	} {
		_, _, err := evaluate(b, c.args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			config := compute.ScaledDotProductAttentionConfig{}
			if c.config != nil {
				config = c.config(in)
			}
			out, _, err := f.FusedScaledDotProductAttention(in[0], in[1], in[2], compute.AttentionAxesLayoutBHSD, &config)
			return out, err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "FusedScaledDotProductAttention") || compute.IsNotImplemented(err) != c.declined {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
