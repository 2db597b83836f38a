package apitest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/machine"
)

// hiddenBy are ways to hide scores from a softmax: with a mask in memory that is true, or one that
// is -inf, where they are hidden. They return the weights.
var hiddenBy = map[string]func(s, hides, bias *millrace.Tensor) *millrace.Tensor{
	"added": func(s, _, bias *millrace.Tensor) *millrace.Tensor { return s.Add(bias).Softmax(-1) },
	"filled": func(s, hides, _ *millrace.Tensor) *millrace.Tensor {
		return s.MaskedFill(hides, math.Inf(-1)).Softmax(-1)
	},
	"filled low": func(s, hides, _ *millrace.Tensor) *millrace.Tensor { return s.MaskedFill(hides, -1e9).Softmax(-1) },
	"kept": func(s, hides, _ *millrace.Tensor) *millrace.Tensor {
		return millrace.WhereScalar(hides.Not(), s, math.Inf(-1)).Softmax(-1)
	},
	"chosen": func(s, hides, bias *millrace.Tensor) *millrace.Tensor {
		return millrace.Where(hides, bias, s).Softmax(-1)
	},
	"added, made of bools": func(s, hides, _ *millrace.Tensor) *millrace.Tensor {
		return s.Add(millrace.ScalarWhere(hides, math.Inf(-1), hides.Cast(millrace.Float32))).Softmax(-1)
	},
	"filled twice": func(s, hides, bias *millrace.Tensor) *millrace.Tensor {
		return s.MaskedFill(hides, math.Inf(-1)).Tanh().MaskedFill(bias.LtScalar(-1), math.Inf(-1)).Softmax(-1)
	},
	"masked":            func(s, hides, _ *millrace.Tensor) *millrace.Tensor { return s.MaskedSoftmax(hides, -1) },
	"added, may be all": func(s, _, bias *millrace.Tensor) *millrace.Tensor { return s.Add(bias).MaskedSoftmax(nil, -1) },
}

// hidingCase is a mask over the scores of batch, heads, n queries and n keys, with the least
// fraction of scores that must be skipped; 0 for none.
type hidingCase struct {
	name  string
	dims  []int
	hides func(rng *rand.Rand, at []int) bool
	least float64
}

// TestHiddenScores: scores that a mask hides are not computed, in every spelling of the program,
// and no bit of the result changes. This includes infinite and NaN scores and values, hidden or
// not, rows that are hidden completely, and masks that hide nothing.
func TestHiddenScores(t *testing.T) {
	const batch, heads, n, d = 2, 2, 330, 64
	specs := []string{"cpu:threads=2,tier=0"}
	cases := []hidingCase{
		{"causal", []int{n, n}, func(_ *rand.Rand, at []int) bool { return at[1] > at[0] }, 0.4},
		{"padding", []int{batch, 1, 1, n}, func(_ *rand.Rand, at []int) bool { return at[3] >= 50+200*at[0] }, 0.4},
		{"rows", []int{n, n}, func(_ *rand.Rand, at []int) bool { return at[0]%100 > 40 || at[1] < at[0]/2 }, 0.2},
		{"all", []int{1, n}, func(*rand.Rand, []int) bool { return true }, 0.8},
		{"random", []int{n, n}, func(rng *rand.Rand, _ []int) bool { return rng.IntN(3) == 0 }, 0},
	}
	tiles := machine.Level() != machine.None
	if tiles {
		specs = []string{"cpu:compile=wait,threads=1", "cpu:compile=wait,threads=2"}
	} else { // contractions in Go are slow
		cases = cases[:2]
	}
	for _, c := range cases {
		for _, odd := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/odd=%v", c.name, odd), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(31, 7))
				x := [3][]float32{}
				for i := range x {
					x[i] = make([]float32, batch*heads*n*d)
					for j := range x[i] {
						x[i][j] = float32(rng.NormFloat64())
					}
				}
				if odd { // in a few rows of queries, keys and values
					nan, inf := float32(math.NaN()), float32(math.Inf(1))
					for i, row := range []int{3, 70, 329} {
						x[0][row*d+i], x[1][(row-2)*d+i], x[2][(n-1-i)*d+i] = []float32{nan, inf, 1e30}[i], []float32{inf, 1e30, nan}[i], []float32{nan, inf, -inf}[i]
					}
				}
				hides, bias := c.elements(rng)
				run := func(spec, how string) (bits []float32, hidden int64) {
					dev := openSpec(t, spec)
					tensor := func(x []float32) *millrace.Tensor { return millrace.FromSliceOn(dev, x, batch, heads, n, d) }
					q, k, v := tensor(x[0]), tensor(x[1]), tensor(x[2])
					s := q.MatMul(k.Permute(0, 1, 3, 2)).MulScalar(0.125)
					weights := hiddenBy[how](s, millrace.FromSliceOn(dev, hides, c.dims...), millrace.FromSliceOn(dev, bias, c.dims...))
					bits, err := millrace.Values[float32](weights.MatMul(v))
					if err != nil {
						t.Fatal(err)
					}
					return bits, dev.Stats().Runtime.Hidden
				}
				for how := range hiddenBy {
					want, none := run("cpu:fusion=off,tier=0", how)
					if none != 0 {
						t.Errorf("%s: %d scores left out that are in memory", how, none)
					}
					specs := specs
					if c.name == "causal" && odd && builtWithCgo { // compiling takes some time
						specs = append(specs, "cpu:compile=c,tier=1,threads=2")
					}
					for _, spec := range specs {
						got, hidden := run(spec, how)
						for i, v := range got {
							if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
								t.Fatalf("%s, %s: element %d is %v, not %v", spec, how, i, v, want[i])
							}
						}
						switch share := float64(hidden) / (batch * heads * n * n); {
						case !tiles: // contractions in Go skip nothing
						case odd && strings.HasPrefix(how, "added"):
						case share < c.least || share > c.share(hides):
							t.Errorf("%s, %s: %v of the scores are left out, not between %v and %v", spec, how, share, c.least, c.share(hides))
						}
					}
				}
			})
		}
	}
}

// elements are a mask's, as bools and as -inf and numbers.
func (c *hidingCase) elements(rng *rand.Rand) (hides []bool, bias []float32) {
	at := make([]int, len(c.dims))
	count := 1
	for _, n := range c.dims {
		count *= n
	}
	for i := range count {
		for d, rest := len(at)-1, i; d >= 0; d-- {
			at[d], rest = rest%c.dims[d], rest/c.dims[d]
		}
		h, b := c.hides(rng, at), float32(rng.NormFloat64()/8)
		if h {
			b = float32(math.Inf(-1))
		}
		hides, bias = append(hides, h), append(bias, b)
	}
	return hides, bias
}

// share is the fraction that a mask hides.
func (c *hidingCase) share(hides []bool) float64 {
	n := 0
	for _, h := range hides {
		if h {
			n++
		}
	}
	return float64(n) / float64(len(hides))
}
