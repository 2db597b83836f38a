package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/millrace-go/millrace/gomlxbackend"
)

// swapped is states, vectors of 64-bit words, with the bytes of each word in the other
// order: cut out one by one and put together again, or moved by shifts.
var swapped = map[string]func(states ...*graph.Node) *graph.Node{
	"slices": func(states ...*graph.Node) *graph.Node {
		var list []*graph.Node
		for _, s := range states {
			bytes := graph.Bitcast(s, dtypes.Uint8) // [words, 8]
			for w := range s.Shape().Dim(0) {
				for b := 7; b >= 0; b-- {
					list = append(list, graph.Slice(bytes, graph.AxisElem(w), graph.AxisElem(b)))
				}
			}
		}
		words := len(list) / 8
		return graph.Bitcast(graph.Reshape(graph.Concatenate(list, 0), words, 8), dtypes.Uint64)
	},
	"shifts": func(states ...*graph.Node) *graph.Node {
		var list []*graph.Node
		for _, s := range states {
			for w := range s.Shape().Dim(0) {
				word := graph.Slice(s, graph.AxisElem(w))
				var sum *graph.Node
				for b := range 8 {
					to := graph.Scalar(s.Graph(), dtypes.Uint64, 8*(7-b))
					from := graph.Scalar(s.Graph(), dtypes.Uint64, 8*b)
					x := graph.BitwiseAnd(graph.BitwiseShiftRightLogical(word, from), graph.Scalar(s.Graph(), dtypes.Uint64, 255))
					x = graph.BitwiseShiftLeft(x, to)
					if sum == nil {
						sum = x
					} else {
						sum = graph.BitwiseOr(sum, x)
					}
				}
				list = append(list, sum)
			}
		}
		return graph.Concatenate(list, 0)
	},
}

// The bytes of several random states are swapped at once, which takes more operands than a
// kernel can have: it is cut where the device needs it, and nothing runs op by op.
func TestSwappedStates(t *testing.T) {
	for name, swap := range swapped {
		for _, n := range []int{1, 3, 5} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				var got [2][]uint64
				for i, config := range []string{"go:ops_sequential", "millrace:cpu"} {
					b, err := compute.NewWithConfig(config)
					if err != nil {
						t.Fatal(err)
					}
					defer b.Finalize()
					exec, err := graph.NewExec(b, func(seeds *graph.Node) *graph.Node {
						var states []*graph.Node
						state := graph.Bitcast(graph.BroadcastToDims(graph.Reshape(seeds, 1), 3), dtypes.Uint64)
						for range n {
							var next *graph.Node
							state, next = graph.RNGStateSplit(state)
							states = append(states, next)
						}
						return swap(states...)
					})
					if err != nil {
						t.Fatal(err)
					}
					for range 3 {
						out, err := exec.Exec(int64(seed))
						if err != nil {
							t.Fatal(err)
						}
						got[i] = append(got[i], tensors.MustCopyFlatData[uint64](out[0])...)
					}
					if m, ok := b.(*gomlxbackend.Backend); ok {
						if s := m.Device().Stats(); s.Unbuilt != 0 || s.Fallbacks != 0 {
							t.Errorf("%d plans that cannot be built, %d segments that fell back", s.Unbuilt, s.Fallbacks)
						}
					}
				}
				if len(got[1]) != 3*3*n || !slices.Equal(got[0], got[1]) {
					t.Errorf("%x, with the Go backend %x", got[1], got[0])
				}
			})
		}
	}
}
