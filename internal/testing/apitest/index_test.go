package apitest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// indices are numbers for an axis of n elements: in range for IndexError, a few outside on both
// ends for the other modes.
func indices(rng *rand.Rand, n int, mode millrace.IndexMode, shape ...int) array {
	return made(shape, func([]int) float64 {
		if mode == millrace.IndexError {
			return float64(rng.IntN(n))
		}
		return float64(rng.IntN(n+4) - 2)
	})
}

// place is the position of an index, or -1 for none.
func place(x float64, n int, mode millrace.IndexMode) int {
	i := int(x)
	switch {
	case i >= 0 && i < n:
		return i
	case mode == millrace.IndexClamp:
		return min(max(i, 0), n-1)
	}
	return -1
}

var modes = []millrace.IndexMode{millrace.IndexError, millrace.IndexClamp, millrace.IndexDrop}

func TestTakeAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(5, 1))
		for i, c := range []struct {
			shape, idx []int
			axis       int
		}{
			{[]int{5}, []int{3}, 0},
			{[]int{5, 4}, []int{7}, 0},
			{[]int{5, 4}, []int{2, 3}, -1},
			{[]int{5, 4, 3}, []int{2, 2, 2}, 1},
			{[]int{5, 4}, []int{}, 0},
			{[]int{5, 4}, []int{0}, 1},
			{[]int{5, 0}, []int{3}, 0},
			{[]int{2, 1, 2, 1, 2, 1, 2, 3}, []int{4}, 7},
			{[]int{3, 4}, []int{1, 2, 1, 2, 1, 2, 2}, 0},
			// A plan made for a batch of one, where nothing broadcasts, and larger batches.
			{[]int{1, 9, 1}, []int{5}, 1},
			{[]int{1, 9, 4}, []int{5}, 1},
			{[]int{3, 9, 4}, []int{5}, 1},
		} {
			for _, mode := range modes {
				for j, dt := range every {
					if j != 0 && (i+j)%4 != 0 {
						continue
					}
					axis := (c.axis + len(c.shape)) % len(c.shape)
					n := c.shape[axis]
					trial{name: fmt.Sprint("take along ", c.axis, " mode ", mode), dt: dt,
						operands: []operandOf{{few(rng, dt, c.shape...), dt}, {indices(rng, n, mode, c.idx...), []ir.DType{ir.Int32, ir.Int64}[i%2]}},
						call: func(x []*tensor) *tensor {
							if mode == millrace.IndexError && i%2 == 0 {
								return x[0].Take(x[1], c.axis)
							}
							return x[0].Take(x[1], c.axis, mode)
						},
						want: func(a []array) array {
							return made(slices.Concat(c.shape[:axis], c.idx, c.shape[axis+1:]), func(at []int) float64 {
								p := place(a[1].get(at[axis:axis+len(c.idx)]...), n, mode)
								if p < 0 {
									return 0
								}
								return a[0].get(slices.Concat(at[:axis], []int{p}, at[axis+len(c.idx):])...)
							})
						}}.run(t, dev)
				}
			}
		}
	})
}

func TestTakeAlongAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(5, 2))
		for i, c := range []struct {
			shape, idx, out []int
			axis            int
		}{
			{[]int{5}, []int{3}, []int{3}, 0},
			{[]int{5, 4}, []int{5, 2}, []int{5, 2}, -1},
			{[]int{5, 4}, []int{7, 1}, []int{7, 4}, 0},
			{[]int{5, 1}, []int{7, 3}, []int{7, 3}, 0},
			{[]int{2, 1, 3}, []int{1, 4, 3}, []int{2, 4, 3}, 1},
			{[]int{2, 3}, []int{2, 0}, []int{2, 0}, 1},
			{[]int{0, 3}, []int{0, 2}, []int{0, 2}, 1},
		} {
			for _, mode := range modes {
				for j, dt := range every {
					if j != 0 && (i+j)%4 != 0 {
						continue
					}
					axis := (c.axis + len(c.shape)) % len(c.shape)
					n := c.shape[axis]
					trial{name: fmt.Sprint("takealong ", c.axis, " mode ", mode), dt: dt,
						operands: []operandOf{{few(rng, dt, c.shape...), dt}, {indices(rng, n, mode, c.idx...), []ir.DType{ir.Int32, ir.Int64}[i%2]}},
						call:     func(x []*tensor) *tensor { return x[0].TakeAlong(x[1], c.axis, mode) },
						want: func(a []array) array {
							return made(c.out, func(at []int) float64 {
								p := place(a[1].cast(at), n, mode)
								if p < 0 {
									return 0
								}
								x := a[0]
								return x.cast(with(at, axis, p))
							})
						}}.run(t, dev)
				}
			}
		}
	})
}

func TestDynamicAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(5, 4))
		for i, c := range []struct {
			shape, size []int
			starts      []float64
		}{
			{[]int{5}, []int{2}, []float64{1}},
			{[]int{5}, []int{2}, []float64{9}},
			{[]int{5}, []int{2}, []float64{-7}},
			{[]int{5, 4}, []int{2, 4}, []float64{2, 3}},
			{[]int{5, 4, 3}, []int{2, 1, 2}, []float64{3, 1, 1}},
			{[]int{5, 4}, []int{0, 2}, []float64{3, 1}},
			{[]int{5, 4}, []int{5, 4}, []float64{3, 1}},
			{[]int{}, []int{}, nil},
			{[]int{0, 2}, []int{0, 1}, []float64{0, 1}},
			{[]int{1, 2, 1, 2, 1, 2, 1, 3}, []int{1, 1, 1, 2, 1, 2, 1, 2}, []float64{0, 1, 0, 0, 5, 0, 0, 1}},
		} {
			for j, dt := range every {
				if j != 0 && (i+j)%4 != 0 {
					continue
				}
				from := make([]int, len(c.shape))
				for d := range from {
					from[d] = min(max(int(c.starts[d]), 0), c.shape[d]-c.size[d])
				}
				starts := operandOf{array{[]int{len(c.shape)}, c.starts}, []ir.DType{ir.Int32, ir.Int64}[i%2]}
				trial{name: fmt.Sprint("dynamicslice ", c.starts), operands: []operandOf{{few(rng, dt, c.shape...), dt}, starts}, dt: dt,
					call: func(x []*tensor) *tensor { return x[0].DynamicSlice(x[1], c.size...) },
					want: func(a []array) array {
						return made(c.size, func(at []int) float64 {
							p := slices.Clone(at)
							for d := range p {
								p[d] += from[d]
							}
							return a[0].get(p...)
						})
					}}.run(t, dev)
				trial{name: fmt.Sprint("dynamicupdate ", c.starts), operands: []operandOf{{few(rng, dt, c.shape...), dt}, starts, {few(rng, dt, c.size...), dt}}, dt: dt,
					call: func(x []*tensor) *tensor { return x[0].DynamicUpdate(x[2], x[1]) },
					want: func(a []array) array {
						r := array{a[0].shape, slices.Clone(a[0].v)}
						each(c.size, func(at []int) {
							p := slices.Clone(at)
							for d := range p {
								p[d] += from[d]
							}
							r.set(a[2].get(at...), p...)
						})
						return r
					}}.run(t, dev)
			}
		}
	})
}
