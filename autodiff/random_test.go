package autodiff_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// program is a random function from a few matrices to one number. It consists of smooth ops, so its
// derivatives are close to central differences, and of ops that move elements.
type program struct {
	seed uint64
	n    int // number of ops
}

func (p program) shapes() [][]int {
	r := rand.New(rand.NewPCG(p.seed, 0))
	rows, cols := 1+r.IntN(4), 1+r.IntN(5)
	return [][]int{{rows, cols}, {cols}, {rows, 1}, {rows, cols}}
}

// run computes the program. drop releases intermediate results at their last use, as a careful
// program does. It changes no bit.
func (p program) run(in []*T, drop bool) *T {
	r := rand.New(rand.NewPCG(p.seed, 1))
	shape := p.shapes()[0]
	pool := []*T{in[0], in[3]}
	pick := func() *T { return pool[len(pool)-1-r.IntN(min(len(pool), 4))] }
	for range p.n {
		x := pick()
		var y *T
		switch r.IntN(22) {
		case 0:
			y = x.Add(pick())
		case 1:
			y = x.Mul(pick()).Tanh()
		case 2:
			y = x.Sub(in[1])
		case 3:
			y = x.Mul(in[2])
		case 4:
			y = x.Sigmoid()
		case 5:
			y = x.Sin()
		case 6:
			y = x.Div(pick().Square().AddScalar(1))
		case 7:
			y = x.Softmax(r.IntN(2))
		case 8:
			y = x.LayerNorm(in[1], nil, 1e-2)
		case 9:
			y = x.MatMul(pick().T()).MatMul(pick()).MulScalar(0.3).Tanh()
		case 10:
			y = x.Sub(x.MeanKeep(r.IntN(2)))
		case 11:
			y = x.Flip(r.IntN(2)).Mul(in[1])
		case 12:
			y = millrace.Concat(0, x.Slice(millrace.R(1, millrace.End)), x.Slice(millrace.R(0, 1)))
		case 13:
			y = x.CumSum(1).MulScalar(0.5)
		case 14:
			y = x.Reshape(-1).Roll(1, 0).Reshape(shape...)
		case 15:
			y = x.Gelu()
		case 16:
			y = x.Take(millrace.FromSliceOn(x.Stream(), []int32{int32(r.IntN(shape[1])), 0}), 1).Sum(1).Unsqueeze(1).Mul(in[2]).Add(x)
		case 17:
			y = x.LogSumExpKeep(1).Add(pick())
		case 18:
			y = x.Assign(x.Slice(millrace.At(0)).Square(), millrace.At(shape[0]-1))
		case 19:
			y = millrace.Where(pick().GtScalar(100), pick(), x.Exp().Log1p())
		case 20:
			y = x.VarKeep(0, 1).AddScalar(0.5).Rsqrt().Mul(x)
		case 21:
			y = x.PowInt(2).MulScalar(0.3).Softplus()
		}
		pool = append(pool, y)
		if drop && len(pool) > 6 && !slices.Contains(in, pool[0]) {
			pool[0].Release()
		}
		if len(pool) > 6 {
			pool = pool[1:]
		}
	}
	total := optable.Weigh(pool[len(pool)-1])
	for _, t := range pool[max(0, len(pool)-3) : len(pool)-1] {
		total = total.Add(t.Square().Mean())
	}
	return total
}

func (p program) inputs(where millrace.Place, dt millrace.DType) []*T {
	var in []*T
	for i, s := range p.shapes() {
		in = append(in, millrace.UniformOn(where, millrace.Float64, p.seed*10+uint64(i), s...).SubScalar(0.5).MulScalar(3).Cast(dt))
	}
	return in
}

// TestRandomDerivatives: derivatives of random programs are close to differences of the programs.
func TestRandomDerivatives(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 15
	}
	for seed := range uint64(n) {
		p := program{seed, 4 + int(seed%9)}
		d := open(t, "cpu")
		in := p.inputs(d, millrace.Float64)
		f := func(in []*T) *T { return p.run(in, false) }
		_, g, err := autodiff.ValueAndGrad(f, in...)
		if err != nil {
			t.Fatal(seed, err)
		}
		for i, x := range in {
			v := values(t, x)
			got := values(t, g[i])
			const h = 1e-5
			for k := range v {
				move := func(by float64) float64 {
					w := slices.Clone(v)
					w[k] += by
					moved := slices.Clone(in)
					moved[i] = millrace.FromSliceOn(d, w, x.Shape()...)
					return item(t, f(moved))
				}
				near(t, fmt.Sprintf("program %d of %d ops, operand %d, element %d", seed, p.n, i, k), got[k], (move(h)-move(-h))/(2*h))
			}
		}
	}
}

// TestRandomBits: the bits of values and derivatives do not depend on how a program is run.
func TestRandomBits(t *testing.T) {
	n := uint64(programs(10, 24, 40))
	interpreted := []string{"cpu:fusion=off,compile=off", "cpu:compile=off", "cpu:queue=3,compile=off", "cpu:queue=9,compile=off", "cpu:explore=wait,threads=1,compile=off"}
	compiled := append(interpreted[:5:5], "cpu:compile=wait,explore=wait")
	byC := append(compiled[:6:6], "cpu:compile=c,tier=1,explore=wait") // the C compiler takes seconds, so only a few short programs
	prepared := int64(0)
	for seed := range n {
		p := program{1000 + seed, 5 + int(seed%20)}
		dt := []millrace.DType{millrace.Float32, millrace.Float64, millrace.BFloat16, millrace.Float16}[seed%4]
		var want []string
		specs := interpreted
		switch {
		case seed%40 == 3:
			specs = byC
		case seed%10 == 3:
			specs = compiled
		}
		for _, spec := range specs {
			d := openOneOf(t, spec)
			s := d.NewStream()
			for way := range 5 {
				in := p.inputs(s, dt)
				for _, x := range in {
					x.Eval()
				}
				derive := func(in []*T) ([]*T, error) {
					v, g, err := autodiff.ValueAndGrad(func(in []*T) *T { return p.run(in, way == 1) }, in...)
					return append([]*T{v}, g...), err
				}
				var got []string
				show := func(ts []*T, err error) {
					if err != nil {
						t.Fatal(seed, spec, way, err)
					}
					for _, x := range ts {
						v, err := millrace.Values[float64](x.Cast(millrace.Float64))
						if err != nil {
							t.Fatal(seed, spec, way, err)
						}
						got = append(got, fmt.Sprint(v))
					}
				}
				switch way {
				case 0, 1:
					show(derive(in))
				case 2:
					s.Scope(func(sc *millrace.Scope) error {
						for i := range in {
							in[i] = in[i].To(sc)
						}
						show(derive(in))
						return nil
					})
				case 4: // outside of a scope: the value ends a segment, and the graph is used twice
					ws := make([]*T, len(in))
					for i, x := range in {
						ws[i] = autodiff.Watch(x)
					}
					v := p.run(ws, seed%2 == 0)
					show([]*T{v}, nil)
					value := got
					for _, keep := range []bool{true, false} {
						got = slices.Clone(value)
						show(autodiff.Options{Keep: keep}.Grad(v, ws...))
						if keep && !slices.Equal(got, want) {
							t.Fatalf("program %d of %d ops in %v, %s, first derivative:\n%v\nwant\n%v", p.seed, p.n, dt, spec, got, want)
						}
					}
				case 3:
					rec := millrace.NewRecording(func(sc *millrace.Scope, in []*T) ([]*T, error) { return derive(in) })
					for range 5 { // recorded, replayed, bound, prepared
						out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
						got = nil
						show(out, err)
					}
					prepared += d.Stats().Runtime.Prepared
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Fatalf("program %d of %d ops in %v, %s, way %d:\n%v\nwant\n%v", p.seed, p.n, dt, spec, way, got, want)
				}
			}
			d.Close()
		}
	}
	if prepared < int64(n) {
		t.Errorf("%d launches of %d programs were prepared", prepared, n)
	}
}

// programs returns how many random programs a test runs: few with -short, all with MILLRACE_LONG.
func programs(short, usual, all int) int {
	switch {
	case testing.Short():
		return short
	case os.Getenv("MILLRACE_LONG") != "":
		return all
	}
	return usual
}
