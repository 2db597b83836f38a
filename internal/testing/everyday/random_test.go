package everyday

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestGeneratorSeeds: seeds of a generator are the words of the op of the same name, for counters
// from 0 on.
func TestGeneratorSeeds(t *testing.T) {
	const seed = 12345
	g := millrace.NewGenerator(seed)
	key := mixed(seed)
	counters := millrace.Arange(millrace.Uint64, 0, 5, 1)
	want, err := millrace.Values[uint64](counters.Philox(millrace.Scalar[uint64](0), millrace.Scalar(key)))
	if err != nil {
		t.Fatal(err)
	}
	child, err := millrace.Item[uint64](millrace.Scalar[uint64](5).Philox(millrace.Scalar[uint64](1), millrace.Scalar(key)))
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if got := g.Seed(); got != w {
			t.Errorf("seed %d is %x, want %x", i, got, w)
		}
	}
	first, err := millrace.Item[uint64](millrace.Scalar[uint64](0).Philox(millrace.Scalar[uint64](0), millrace.Scalar(child)))
	if got := g.Split().Seed(); err != nil || got != first {
		t.Errorf("the first seed of a generator that was split off is %x, want %x: %v", got, first, err)
	}
	state, err := g.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var other millrace.Generator
	if err := other.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if a, b := g.Seed(), other.Seed(); a != b {
			t.Errorf("seed %d after a restart is %x, want %x", i, b, a)
		}
	}
	for _, bad := range [][]byte{nil, state[:16], append(slices.Clone(state), 0), append([]byte{9}, state[1:]...)} {
		if err := other.UnmarshalBinary(bad); err == nil {
			t.Errorf("%d bytes were taken for a state", len(bad))
		}
	}
	if a, b := g.Seed(), other.Seed(); a != b {
		t.Errorf("a bad state changed the generator: %x, want %x", b, a)
	}
	seen := map[uint64]bool{}
	for i := range uint64(1000) {
		g := millrace.NewGenerator(i)
		for range 10 {
			seen[g.Seed()] = true
		}
		seen[g.Split().Seed()] = true
	}
	if len(seen) != 11000 {
		t.Errorf("of 11000 seeds of 1000 generators %d are different", len(seen))
	}
}

func mixed(seed uint64) uint64 {
	seed += 0x9e3779b97f4a7c15
	seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	seed = (seed ^ seed>>27) * 0x94d049bb133111eb
	return seed ^ seed>>31
}

// tooFar rejects a sum of squared deviations that chance gives once in 100,000 times. The numbers
// are the same in every run, so the result never changes.
func tooFar(counts []float64, shares []float64) error {
	n, x := 0.0, 0.0
	for _, c := range counts {
		n += c
	}
	free := -1.0
	for i, c := range counts {
		e := n * shares[i]
		if e == 0 {
			if c != 0 {
				return fmt.Errorf("%v of a share of 0", c)
			}
			continue
		}
		free++
		x += (c - e) * (c - e) / e
	}
	// Wilson and Hilferty: the cube root is nearly normal.
	z := (math.Cbrt(x/free) - 1 + 2/(9*free)) / math.Sqrt(2/(9*free))
	if z > 4.3 {
		return fmt.Errorf("%v for shares %v", counts, shares)
	}
	return nil
}

func TestDistributions(t *testing.T) {
	for _, spec := range []string{"cpu", "webgpu", "opengl", "vulkan"} {
		t.Run(spec, func(t *testing.T) {
			d := open(t, spec)
			count := func(x *tensor, n int) []float64 {
				c, err := elements(millrace.BinCount(millrace.Int32, x, n))
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			same := slices.Repeat([]float64{1.0 / 12}, 12)
			if err := tooFar(count(millrace.IntegersOn(d, millrace.Int32, 1, 0, 12, 120000), 12), same); err != nil {
				t.Error("integers: ", err)
			}
			weights := []float32{3, 0, 1, 0.5, 0, 5.5, 0}
			shares := []float64{0.3, 0, 0.1, 0.05, 0, 0.55, 0}
			w := millrace.FromSliceOn(d, weights)
			if err := tooFar(count(millrace.Multinomial(millrace.Int32, 5, w, 40000, true), 7), shares); err != nil {
				t.Error("multinomial: ", err)
			}
			rows := millrace.Stack(0, w, w.Flip(), w)
			r := millrace.Multinomial(millrace.Int32, 6, rows, 20000, true)
			for i, part := range millrace.Chunk(r, 3, 0) {
				want := slices.Clone(shares)
				if i == 1 {
					slices.Reverse(want)
				}
				if err := tooFar(count(part, 7), want); err != nil {
					t.Errorf("row %d: %v", i, err)
				}
			}
			// Without replacement the first draw has the same distribution, and no number occurs
			// twice.
			many := w.Expand(20000, 7)
			order := millrace.Multinomial(millrace.Int32, 7, many, 7, false)
			if err := tooFar(count(order.Slice(millrace.All, millrace.At(0)), 7), shares); err != nil {
				t.Error("first without replacement: ", err)
			}
			sorted, err := millrace.Equal(order.Cast(millrace.Float32).Sort(1).Cast(millrace.Int32), millrace.ArangeOn(d, millrace.Int32, 0, 7, 1).Expand(20000, 7))
			if err != nil || !sorted {
				t.Errorf("not all positions are drawn: %v", err)
			}
			last := order.Slice(millrace.All, millrace.R(4, 7)).Sort(1)
			if ok, err := millrace.Equal(last, millrace.FromSliceOn(d, []int32{1, 4, 6}).Expand(20000, 3)); err != nil || !ok {
				t.Errorf("weights of 0 do not come last: %v", err)
			}
			// All positions of all permutations of a few numbers are equally likely.
			var at []*tensor
			for seed := range uint64(1200) {
				at = append(at, millrace.PermutationOn(d, millrace.Int32, seed, 12))
			}
			all := millrace.Stack(0, at...)
			for _, place := range []int{0, 5, 11} {
				if err := tooFar(count(all.Slice(millrace.All, millrace.At(place)), 12), same); err != nil {
					t.Errorf("place %d of permutations: %v", place, err)
				}
			}
			for _, x := range []*tensor{millrace.Multinomial(millrace.Int32, 1, w.MulScalar(0), 9, true), millrace.Multinomial(millrace.Int32, 1, w.MulScalar(math.NaN()), 9, true)} {
				for _, v := range must(t, x) {
					if v < 0 || v > 6 {
						t.Errorf("position %v of weights that mean nothing", v)
					}
				}
			}
		})
	}
}

func must(t *testing.T, x *tensor) []float64 {
	t.Helper()
	vs, err := elements(x)
	if err != nil {
		t.Fatal(err)
	}
	return vs
}
