package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/millrace-go/millrace/gomlxbackend"
)

// attended is attention by GoMLX's layer, and its derivatives, in the fused form or not, and
// how many ops a run of it is.
func attended(t *testing.T, b compute.Backend, layout attention.AxesLayout, fused bool, inputs []any, options func(g *graph.Graph, in []*graph.Node) attention.CoreOptions) (results [][]float32, ops int64) {
	t.Helper()
	exec, err := graph.NewExec(b, func(in []*graph.Node) []*graph.Node {
		o := options(in[0].Graph(), in[3:])
		o.DisableFusion = !fused
		y, _ := attention.Core(in[0], in[1], in[2], layout, o)
		return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Square(y)), in[0], in[1], in[2])...)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	dev := b.(*gomlxbackend.Backend).Device()
	for range 2 {
		before := dev.Stats().Ops
		out, err := exec.Exec(inputs...)
		if err != nil {
			t.Fatal(err)
		}
		ops, results = dev.Stats().Ops-before, nil
		for _, x := range out {
			results = append(results, tensors.MustCopyFlatData[float32](x))
		}
	}
	return results, ops
}

// The fused op of attention gives what GoMLX's decomposed form gives, whatever hides keys, in
// the forms that it takes and those that it declines, and a graph that has both, for the
// derivatives are those of the decomposed form, computes nothing twice.
func TestAttentionIsDecomposed(t *testing.T) {
	b, err := compute.NewWithConfig("millrace:cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	r := rand.New(rand.NewPCG(seed, 3))
	const batch, length, width = 3, 5, 8
	bools := func(dims ...int) *tensors.Tensor {
		n := 1
		for _, d := range dims {
			n *= d
		}
		list := make([]bool, n)
		for i := range list {
			list[i] = i%length == 0 || r.IntN(3) > 0
		}
		return tensors.FromFlatDataAndDimensions(list, dims...)
	}
	for _, heads := range [][2]int{{4, 4}, {4, 2}} {
		for _, layout := range []attention.AxesLayout{attention.LayoutBHSD, attention.LayoutBSHD} {
			of := func(heads int) *tensors.Tensor {
				if layout == attention.LayoutBSHD {
					return normals(r, batch, length, heads, width)
				}
				return normals(r, batch, heads, length, width)
			}
			four := []int{batch, 1, length, length}
			if layout == attention.LayoutBSHD {
				four = []int{batch, length, 1, length}
			}
			q, k, v := of(heads[0]), of(heads[1]), of(heads[1])
			mask := func(_ *graph.Graph, in []*graph.Node) attention.CoreOptions {
				return attention.CoreOptions{AttentionMask: in[0]}
			}
			for name, c := range map[string]struct {
				more    []any
				options func(g *graph.Graph, in []*graph.Node) attention.CoreOptions
			}{
				"plain": {nil, func(*graph.Graph, []*graph.Node) attention.CoreOptions { return attention.CoreOptions{} }},
				"causal": {nil, func(*graph.Graph, []*graph.Node) attention.CoreOptions {
					return attention.CoreOptions{UseCausalMask: true}
				}},
				"four axes":  {[]any{bools(four...)}, mask},
				"three axes": {[]any{bools(batch, length, length)}, mask},
				"two axes":   {[]any{bools(batch, length)}, mask},
				"bias": {[]any{normals(r, batch, heads[0], length, length)}, func(_ *graph.Graph, in []*graph.Node) attention.CoreOptions {
					return attention.CoreOptions{AttentionBias: in[0], UseCausalMask: true, Scale: 0.5}
				}},
			} {
				if name == "bias" && layout == attention.LayoutBSHD && heads[0] != heads[1] {
					continue // GoMLX's decomposed form splits the heads of a transposed bias along another axis
				}
				t.Run(fmt.Sprint(name, heads, layout), func(t *testing.T) {
					inputs := append([]any{q, k, v}, c.more...)
					want, decomposedOps := attended(t, b, layout, false, inputs, c.options)
					got, ops := attended(t, b, layout, true, inputs, c.options)
					if ops != decomposedOps || ops == 0 {
						t.Errorf("%d ops, decomposed %d", ops, decomposedOps)
					}
					for i := range want {
						for j := range want[i] {
							if d := math.Abs(float64(got[i][j] - want[i][j])); !(d < 2e-5) {
								t.Fatalf("result %d at %d is %v, decomposed %v", i, j, got[i][j], want[i][j])
							}
						}
					}
				})
			}
		}
	}
}
