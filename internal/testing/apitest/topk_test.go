package apitest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// TestTopKSelectsWhatSortsFirst: TopK of a long axis selects the first elements of the axis's
// sort, including ties, NaN and zeros of both signs, for every dtype, axis and way to run.
func TestTopKSelectsWhatSortsFirst(t *testing.T) {
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e-40, -1e-40, 5e-324}
	rng := rand.New(rand.NewPCG(40, 1))
	for _, spec := range []string{"cpu:tier=0", "cpu:compile=wait", "cpu:denormals=flush"} {
		dev := openSpec(t, spec)
		for i, dt := range numbers {
			for j, c := range []struct {
				shape   []int
				axis, k int
				values  int // number of different values; some elements are equal
			}{
				{[]int{4096}, 0, 1, 1000},
				{[]int{5001}, -1, 10, 30},
				{[]int{2, 8192}, 1, 7, 4000},
				{[]int{4100, 3}, 0, 5, 100},
				{[]int{2, 4099, 1}, 1, 3, 1},
				{[]int{4200}, 0, 20, 0}, // special ones alone
				{[]int{9000}, 0, 9, 3},
			} {
				if spec != "cpu:tier=0" && (i+j)%3 > 0 {
					continue
				}
				n := 1
				for _, d := range c.shape {
					n *= d
				}
				data := make([]float64, n)
				for at := range data {
					if c.values > 0 && rng.IntN(20) > 0 {
						data[at] = float64(rng.IntN(c.values) - c.values/2)
					} else if dt.IsFloat() {
						data[at] = special[rng.IntN(len(special))]
					}
				}
				if c.values == 3 && dt.IsFloat() { // fewer than k that are no NaN
					for at := range data {
						if at != 4321 {
							data[at] = math.NaN()
						}
					}
				}
				wide := millrace.FromSliceOn(dev, data, c.shape...)
				x := wide.Cast(dt)
				inMemory(t, x)
				name := fmt.Sprintf("%s: %v %v along %d, %d", spec, dt, c.shape, c.axis, c.k)
				before := dev.Stats()
				values, positions := millrace.TopK(x, c.k, c.axis)
				axis := (c.axis + len(c.shape)) % len(c.shape)
				head := make([]millrace.Range, axis+1)
				for d := range head {
					head[d] = millrace.All
				}
				head[axis] = millrace.R(0, c.k)
				want := x.SortDescending(axis).Slice(head...)
				order := x.ArgSortDescending(axis).Slice(head...)
				got, err := millrace.Values[int64](positions)
				first, err2 := millrace.Values[int64](order)
				if err != nil || err2 != nil {
					t.Fatalf("%s: %v, %v", name, err, err2)
				}
				for at := range first {
					if got[at] != first[at] {
						t.Fatalf("%s: positions %v, want %v", name, got, first)
					}
				}
				differ := values.Reshape(-1).Bitcast(bitsOf(dt)).Ne(want.Reshape(-1).Bitcast(bitsOf(dt)))
				if n, err := millrace.Item[bool](differ.Any()); err != nil || n {
					t.Fatalf("%s: other values; %v", name, err)
				}
				if dev.Stats().Fallbacks != before.Fallbacks {
					t.Errorf("%s: a fallback", name)
				}
			}
		}
	}
}

// bitsOf returns the unsigned integer dtype of a dtype's width.
func bitsOf(dt ir.DType) ir.DType {
	return map[int]ir.DType{8: ir.Uint8, 16: ir.Uint16, 32: ir.Uint32, 64: ir.Uint64}[dt.Bits()]
}

// BenchmarkTopK selects 10 of a million elements, beside their maximum.
func BenchmarkTopK(b *testing.B) {
	dev, err := millrace.Open("cpu")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	x := millrace.NormalOn(dev, millrace.Float32, 1, 1_000_000)
	if err := x.Eval(); err != nil {
		b.Fatal(err)
	}
	benchTensor(b, dev, "max", func() *millrace.Tensor { return x.Max() })
	benchTensor(b, dev, "10", func() *millrace.Tensor {
		v, p := millrace.TopK(x, 10, 0)
		p.Release()
		return v
	})
}
