package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// moments are the mean, the deviation and the largest magnitude.
func moments(t *testing.T, p *nn.Param) (mean, std, top float64) {
	t.Helper()
	v := values(t, p.Tensor())
	for _, x := range v {
		mean += float64(x) / float64(len(v))
		top = max(top, math.Abs(float64(x)))
	}
	for _, x := range v {
		std += (float64(x) - mean) * (float64(x) - mean) / float64(len(v))
	}
	return mean, math.Sqrt(std), top
}

// TestInits checks the deviation and the bound of every distribution of first values.
func TestInits(t *testing.T) {
	seed := nn.Seed(5)
	linear := func(f nn.Init) *nn.Param { return nn.NewLinear(300, 200, seed, nn.Weights(f)).Weight }
	kernel := func(f nn.Init) *nn.Param { return nn.NewConv2d(40, 60, 3, seed, nn.Weights(f)).Weight }
	plain := nn.NewLinear(300, 200, seed)
	attention := nn.NewMultiHeadAttention(120, 4, seed)
	var gruWeight *nn.Param
	for _, p := range nn.Params(nn.NewGRU(50, 100, seed)) {
		if p.Name == "weight_ih_l0" {
			gruWeight = p.Param
		}
	}
	normal := math.Inf(1)
	for name, c := range map[string]struct {
		p          *nn.Param
		std, bound float64
	}{
		"linear":          {plain.Weight, 0, 1 / math.Sqrt(300)},
		"linear bias":     {plain.Bias, 0, 1 / math.Sqrt(300)},
		"conv":            {nn.NewConv2d(40, 60, 3, seed, nn.Groups(2)).Weight, 0, 1 / math.Sqrt(20*9)},
		"convtranspose":   {nn.NewConvTranspose2d(40, 60, 3, seed).Weight, 0, 1 / math.Sqrt(60*9)},
		"gru":             {gruWeight, 0, 1 / math.Sqrt(100)},
		"attention":       {attention.InProjWeight, 0, math.Sqrt(6.0 / (120 + 360))},
		"embedding":       {nn.NewEmbedding(300, 50, seed).Weight, 1, normal},
		"xavier uniform":  {linear(nn.InitXavierUniform(2)), 0, 2 * math.Sqrt(6.0/500)},
		"xavier normal":   {kernel(nn.InitXavierNormal(1)), math.Sqrt(2.0 / (100 * 9)), normal},
		"he uniform":      {linear(nn.InitHeUniform(nn.FanIn, nn.GainReLU)), 0, math.Sqrt(2) * math.Sqrt(3.0/300)},
		"he uniform out":  {linear(nn.InitHeUniform(nn.FanOut, 1)), 0, math.Sqrt(3.0 / 200)},
		"he normal":       {kernel(nn.InitHeNormal(nn.FanIn, nn.GainReLU)), math.Sqrt(2.0 / (40 * 9)), normal},
		"he normal out":   {kernel(nn.InitHeNormal(nn.FanOut, nn.GainLeakyReLU(0.5))), math.Sqrt(2/1.25) / math.Sqrt(60*9), normal},
		"normal":          {linear(nn.InitNormal(0, 0.02)), 0.02, normal},
		"uniform":         {linear(nn.InitUniform(-3, 3)), 0, 3},
		"a program's own": {linear(func(d nn.Draw) *tensor { return d.Uniform(-1, 1).Square().Mul(d.Full(2)).SubScalar(2.0 / 3) }), math.Sqrt(16.0 / 45), normal},
	} {
		mean, std, top := moments(t, c.p)
		want := c.std
		if c.bound < normal {
			want = c.bound / math.Sqrt(3)
			if top > c.bound || top < 0.97*c.bound {
				t.Errorf("%s: up to %v, want %v", name, top, c.bound)
			}
		}
		n := float64(c.p.Tensor().Len())
		if math.Abs(mean) > 5*want/math.Sqrt(n) || math.Abs(std-want) > 3*want/math.Sqrt(n)+0.01*want {
			t.Errorf("%s: mean %v, deviation %v, want 0 and %v", name, mean, std, want)
		}
	}
	for name, p := range map[string]*nn.Param{"bias": attention.InProjBias, "output": attention.OutProj.Bias, "norm": nn.NewLayerNorm(9).Bias} {
		if _, _, top := moments(t, p); top != 0 {
			t.Errorf("%s: up to %v", name, top)
		}
	}
	if mean, std, _ := moments(t, nn.NewBatchNorm2d(9).Weight); math.Abs(mean-1) > 1e-9 || std > 1e-9 {
		t.Errorf("a norm's weight: %v, %v", mean, std)
	}
	if row := values(t, nn.NewEmbedding(5, 3, nn.PaddingIndex(2)).Weight.Tensor().Slice(millrace.At(2))); !slices.Equal(row, []float32{0, 0, 0}) {
		t.Errorf("the padding's row: %v", row)
	}
}

func TestInitOrthogonal(t *testing.T) {
	for _, shape := range [][]int{{30, 20}, {20, 30}, {25, 25}, {6, 4, 3, 3}} {
		w := nn.NewParam(millrace.Zeros(millrace.Float32, shape...))
		w.Init(nn.InitOrthogonal(2), nn.Seed(3))
		m := w.Tensor().Reshape(shape[0], -1)
		if m.Dim(0) > m.Dim(1) {
			m = m.T()
		}
		n := m.Dim(0)
		eye := millrace.Arange(millrace.Int32, 0, float64(n), 1).OneHot(millrace.Float32, n).MulScalar(4)
		if ok, err := millrace.AllClose(m.MatMul(m.T()), eye, 0, 1e-5); err != nil || !ok {
			t.Errorf("%v: %v, %v", shape, m.MatMul(m.T()), err)
		}
	}
}

// TestSeed: one seed gives each parameter different numbers, and gives all of them again.
func TestSeed(t *testing.T) {
	all := func(opts ...nn.Option) (v [][]float32) {
		for _, p := range nn.Params([]any{nn.NewLinear(4, 4, opts...), nn.NewLinear(4, 4, opts...)}) {
			v = append(v, values(t, p.Tensor()))
		}
		return v
	}
	a, b := all(nn.Seed(1)), all(nn.Seed(1))
	for i := range a {
		if !slices.Equal(a[i], b[i]) {
			t.Errorf("parameter %d: %v and %v", i, a[i], b[i])
		}
	}
	if slices.Equal(a[0], a[2]) || slices.Equal(a[0], all(nn.Seed(2))[0]) {
		t.Error("two layers, or two seeds, have the same weights")
	}
	if c := all(); slices.Equal(c[0], c[2]) {
		t.Error("without a seed all layers have the same weights")
	}
}
