package apitest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
)

// attention is softmax(q·kᵀ/√d + mask)·v, from public ops.
func attention(q, k, v, mask *millrace.Tensor) *millrace.Tensor {
	d := q.Dim(-1)
	s := q.MatMul(k.Permute(0, 1, 3, 2)).MulScalar(1 / math.Sqrt(float64(d)))
	if mask != nil {
		s = s.Add(mask)
	}
	return s.Softmax(-1).MatMul(v)
}

// causal is 0 on and below the diagonal and -Inf above.
func causal(dev *millrace.Device, n int) *millrace.Tensor {
	ones := millrace.FullOn(dev, millrace.Bool, 1, n, n)
	i := millrace.ArangeOn(dev, millrace.Int32, 0, float64(n), 1)
	return millrace.FullOn(dev, millrace.Float32, 0, n, n).MaskedFill(ones.And(i.Gt(i.Unsqueeze(-1))), math.Inf(-1))
}

// Attention is found, not called: its bits are those of one kernel per op, on
// any tier and with any threads, and its scores are never in memory as a whole.
func TestAttention(t *testing.T) {
	const heads, n = 3, 320
	compiled := []string{"cpu:compile=wait", "cpu:threads=1,tier=0", "cpu:threads=4,tier=0"}
	for _, c := range []struct {
		name     string
		batch, d int
		groups   int // heads that share a key
		masked   bool
		specs    []string
	}{
		{"plain", 2, 16, 1, false, compiled},
		{"causal", 2, 16, 1, true, compiled},
		{"grouped", 2, 16, 3, true, compiled},
		{"interpreted", 1, 1, 1, false, []string{"ref"}}, // slow: as little as makes a chain
	} {
		batch, d := c.batch, c.d
		scores := int64(batch * heads * n * n * 4)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := func(spec string) (bits []float32, peak, kernels int64) {
				dev := openSpec(t, spec)
				q := millrace.NormalOn(dev, millrace.Float32, 1, batch, heads, n, d)
				k := millrace.NormalOn(dev, millrace.Float32, 2, batch, heads/c.groups, n, d)
				v := millrace.NormalOn(dev, millrace.Float32, 3, batch, heads/c.groups, n, d)
				var mask *millrace.Tensor
				inMemory(t, q, k, v)
				if c.masked {
					mask = causal(dev, n)
					inMemory(t, mask)
				}
				for range 2 {
					dev.ResetPeak()
					before := dev.Stats()
					err := dev.Scope(func(sc *millrace.Scope) (err error) {
						bits, err = millrace.Values[float32](attention(q.To(sc), k, v, mask))
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					after := dev.Stats()
					if f := after.Fallbacks - before.Fallbacks; f != 0 {
						t.Errorf("%s: %d fallbacks", spec, f)
					}
					peak, kernels = after.Runtime.PeakBytes-before.Runtime.AllocBytes, after.Kernels-before.Kernels
				}
				return bits, peak, kernels
			}
			want, _, _ := run("cpu:fusion=off,tier=0")
			for _, spec := range c.specs {
				got, peak, kernels := run(spec)
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%s: element %d is %v, not %v", spec, i, got[i], want[i])
					}
				}
				if peak >= scores || kernels != 3 {
					t.Errorf("%s: %d kernels, %d bytes at once beside the operands; the scores are %d", spec, kernels, peak, scores)
				}
			}
		})
	}
}

// Masked blocks may only be left out where that changes no bit: not where they
// multiply what is no number, nor where a score is none whatever its mask.
func TestAttentionMasks(t *testing.T) {
	const heads, n, d = 2, 400, 8 // d above the features that are edited
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	type inputs struct{ q, k, v, mask []float32 }
	score := func(x inputs, row, col int) *float32 { return &x.mask[row*n+col] }
	element := func(x []float32, head, token, feature int) *float32 { return &x[(head*n+token)*d+feature] }
	devices := map[string]*millrace.Device{} // one of each: they compile once
	for _, spec := range []string{"cpu:fusion=off,tier=0", "cpu:compile=wait", "cpu:threads=1,tier=0", "ref"} {
		devices[spec] = openSpec(t, spec)
	}
	for _, c := range []struct {
		name string
		edit func(x inputs)
	}{
		{"finite", func(inputs) {}},
		{"values", func(x inputs) {
			*element(x.v, 0, n-1, 3), *element(x.v, 0, 300, 4), *element(x.v, 1, 200, 5) = nan, inf, -inf
		}},
		{"queries and keys", func(x inputs) {
			*element(x.q, 0, 10, 0), *element(x.q, 0, 20, 1), *element(x.k, 0, 350, 2), *element(x.k, 1, 390, 3) = nan, inf, inf, nan
		}},
		{"scores that overflow", func(x inputs) {
			for f := range d {
				*element(x.q, 0, 5, f), *element(x.k, 0, 380, f), *element(x.k, 1, 390, f) = 1e30, 1e30, -1e30
			}
		}},
		{"mask", func(x inputs) {
			*score(x, 7, 300), *score(x, 9, 350) = nan, inf
			for col := range n {
				*score(x, 11, col) = -inf // a row of nothing
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(21, 1))
			fill := func(count int) []float32 {
				x := make([]float32, count)
				for i := range x {
					x[i] = float32(rng.NormFloat64())
				}
				return x
			}
			x := inputs{fill(heads * n * d), fill(heads * n * d), fill(heads * n * d), make([]float32, n*n)}
			for row := range n {
				for col := row + 1; col < n; col++ {
					*score(x, row, col) = -inf
				}
			}
			c.edit(x)
			run := func(spec string) []float32 {
				dev := devices[spec]
				tensor := func(x []float32, dims ...int) *millrace.Tensor { return millrace.FromSliceOn(dev, x, dims...) }
				q, k, v := tensor(x.q, 1, heads, n, d), tensor(x.k, 1, heads, n, d), tensor(x.v, 1, heads, n, d)
				got, err := millrace.Values[float32](attention(q, k, v, tensor(x.mask, n, n)))
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			want := run("cpu:fusion=off,tier=0")
			for _, spec := range []string{"cpu:compile=wait", "cpu:threads=1,tier=0", "ref"} {
				for i, v := range run(spec) {
					if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
						t.Fatalf("%s: element %d is %v, not %v", spec, i, v, want[i])
					}
				}
			}
		})
	}
}

// Scores that are asked for twice are written the second time, by the last launch
// of a chain: over what it is handed there is no memory to write.
func TestScoresTwice(t *testing.T) {
	const heads, n, d = 6, 320, 64
	run := func(spec string) (bits [2][]float32) {
		dev := openSpec(t, spec)
		q := millrace.NormalOn(dev, millrace.Float32, 1, 1, heads, n, d)
		k := millrace.NormalOn(dev, millrace.Float32, 2, 1, heads, n, d)
		v := millrace.NormalOn(dev, millrace.Float32, 3, 1, heads, n, d)
		inMemory(t, q, k, v)
		i := millrace.ArangeOn(dev, millrace.Int32, 0, n, 1)
		s := q.MatMul(k.Permute(0, 1, 3, 2)).MulScalar(0.25).MaskedFill(i.Gt(i.Unsqueeze(-1)), math.Inf(-1))
		for pass := range bits {
			var err error
			if bits[pass], err = millrace.Values[float32](s.Softmax(-1).MatMul(v)); err != nil {
				t.Fatal(err)
			}
		}
		return bits
	}
	want := run("cpu:fusion=off,tier=0")
	for _, spec := range []string{"cpu:tier=0", "cpu:threads=1,tier=0"} {
		for pass, got := range run(spec) {
			for i, v := range got {
				if math.Float32bits(v) != math.Float32bits(want[0][i]) {
					t.Fatalf("%s, pass %d: element %d is %v, not %v", spec, pass, i, v, want[0][i])
				}
			}
		}
	}
}

// What comes of scores that a mask hides is computed once for the end of a row,
// and that changes no bit: not where folding it many times gives more than
// folding it once, nor where rows end at any place of a vector.
func TestAttentionTails(t *testing.T) {
	const heads, n, d = 2, 700, 16
	for name, weights := range map[string]func(s *millrace.Tensor) *millrace.Tensor{
		"softmax": func(s *millrace.Tensor) *millrace.Tensor { return s.Softmax(-1) },
		"sums that grow": func(s *millrace.Tensor) *millrace.Tensor {
			e := s.Sub(s.MaxKeep(-1)).Exp().AddScalar(0.3)
			return e.Div(e.SumKeep(-1))
		},
		"sums of infinities": func(s *millrace.Tensor) *millrace.Tensor {
			e := s.Sub(s.MaxKeep(-1))
			return e.Div(e.SumKeep(-1)).AddScalar(1)
		},
		"least, greatest and sum": func(s *millrace.Tensor) *millrace.Tensor {
			return s.MaximumScalar(-3).Sub(s.MinKeep(-1).MaximumScalar(-7)).Mul(s.MaxKeep(-1)).Sub(s.Exp().SumKeep(-1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(spec string) (bits []float32, kernels int64) {
				dev := openSpec(t, spec)
				q := millrace.NormalOn(dev, millrace.Float32, 1, 1, heads, n, d)
				k := millrace.NormalOn(dev, millrace.Float32, 2, 1, heads, n, d)
				v := millrace.NormalOn(dev, millrace.Float32, 3, 1, heads, n, d)
				mask := causal(dev, n)
				inMemory(t, q, k, v, mask)
				before := dev.Stats().Kernels
				err := dev.Scope(func(sc *millrace.Scope) (err error) {
					s := q.To(sc).MatMul(k.Permute(0, 1, 3, 2)).MulScalar(0.25).Add(mask)
					bits, err = millrace.Values[float32](weights(s).MatMul(v))
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return bits, dev.Stats().Kernels - before
			}
			want, _ := run("cpu:fusion=off,tier=0")
			for _, spec := range []string{"cpu:compile=wait", "cpu:threads=1,tier=0"} {
				got, kernels := run(spec)
				if kernels != 3 {
					t.Errorf("%s: %d kernels, not 3", spec, kernels)
				}
				for i, v := range got {
					if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
						t.Fatalf("%s: element %d is %v, not %v", spec, i, v, want[i])
					}
				}
			}
		})
	}
}
