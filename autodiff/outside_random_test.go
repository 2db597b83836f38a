package autodiff_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// restless is a random function of mostly cheap ops. At random moments it reads results, releases
// those that it no longer uses, sets handles, takes gradients, and runs the garbage collector. None
// of this changes a value.
type restless struct {
	seed uint64
	ops  int
	calm bool // does nothing meanwhile
}

func (p restless) run(t *testing.T, x, w *T) (loss *T) {
	r, do := rand.New(rand.NewPCG(p.seed, 1)), rand.New(rand.NewPCG(p.seed, 2))
	pool, done := []*T{x, x.AddScalar(1)}, []*T(nil)
	held := x.Square() // read now and then, in many segments
	for range p.ops {
		pick := func() *T { return pool[len(pool)-1-r.IntN(min(len(pool), 4))] }
		a, b := pick(), pick()
		var y *T
		switch r.IntN(16) {
		case 0:
			y = a.Add(b)
		case 1:
			y = a.Mul(b).MulScalar(0.5)
		case 2:
			y = a.Square().AddScalar(1).Sqrt()
		case 3:
			y = a.Sub(b)
		case 4:
			y = a.Mul(a.AddScalar(1)).MulScalar(0.25)
		case 5:
			y = a.Div(b.Square().AddScalar(1))
		case 6:
			y = a.Sin()
		case 7:
			y = a.Maximum(b).Neg()
		case 8:
			y = a.T().Square().T().MulScalar(0.3)
		case 9:
			y = a.Mul(b.MeanKeep(1))
		case 10:
			y = a.MatMul(w).Tanh().Add(b)
		case 11:
			y = millrace.Where(a.Gt(b), a, b.MulScalar(0.5))
		case 12:
			y = a.Slice(millrace.R(0, 1)).Square().Mul(b)
		case 13:
			y = a.LayerNorm(nil, nil, 1e-3)
		case 14:
			y = a.Mul(held).ClampScalar(-3, 3)
		case 15:
			y = a.Abs().AddScalar(0.5).Rsqrt()
		}
		if pool = append(pool, y); len(pool) > 5 {
			if pool[0] != x {
				done = append(done, pool[0])
			}
			pool = pool[1:]
		}
		if !p.calm {
			done = p.meanwhile(t, do, x, y, pool, done)
		}
	}
	total := pool[len(pool)-1].Mean()
	for _, y := range pool[:len(pool)-1] {
		total = total.Add(y.Square().Mean())
	}
	return total
}

// meanwhile does one thing or nothing. It returns the results that are not used any more and not
// released.
func (p restless) meanwhile(t *testing.T, do *rand.Rand, x, y *T, pool, done []*T) []*T {
	switch do.IntN(24) {
	case 0:
		floats(t, y.Reshape(-1))
	case 1:
		pool[do.IntN(len(pool))].Eval()
	case 2:
		h := millrace.ZerosOn(x.Stream(), millrace.Float32, 1)
		h.Set(pool[do.IntN(len(pool))])
	case 3:
		if g, err := (autodiff.Options{Keep: true}).Grad(y.Sum(), x); err != nil {
			t.Fatal(err)
		} else if do.IntN(2) == 0 {
			floats(t, g[0].Reshape(-1))
		}
	case 4:
		runtime.GC()
	case 5:
		x.Stream().Sync(t.Context())
	case 6, 7, 8, 9, 10:
		if len(done) > 0 {
			i := do.IntN(len(done))
			done[i].Release()
			done = slices.Delete(done, i, i+1)
		}
	}
	return done
}

// TestRandomOutside: the bits of a gradient are the same outside of scopes and in one, whatever the
// program does between the ops, and in the second pass as in the first.
func TestRandomOutside(t *testing.T) {
	const rows = 6 // square: the programs transpose
	for seed := range uint64(programs(6, 12, 24)) {
		p := restless{seed: seed, ops: 20 + int(seed%5)*20}
		var want []float32
		for way, spec := range []string{"cpu:compile=off,cache=off", "cpu:compile=off,cache=off", "cpu:queue=9,compile=off,cache=off", "cpu:fusion=off,compile=off,cache=off"} {
			d := openOneOf(t, spec)
			s := d.NewStream()
			data, weight := millrace.NormalOn(s, millrace.Float32, seed, rows, rows), millrace.NormalOn(s, millrace.Float32, seed+100, rows, rows).MulScalar(0.3)
			floats(t, data.Reshape(-1))
			floats(t, weight.Reshape(-1))
			pass := func(at millrace.Place) []float32 {
				x, w := autodiff.Watch(data.To(at)), autodiff.Watch(weight.To(at))
				g, err := autodiff.Grad(p.run(t, x, w), x, w)
				if err != nil {
					t.Fatal(seed, spec, err)
				}
				return floats(t, millrace.Concat(0, g[0], g[1]).Reshape(-1))
			}
			for turn := range 3 {
				var got []float32
				if p.calm = way == 0; p.calm {
					s.Scope(func(sc *millrace.Scope) error { got = pass(sc); return nil })
				} else {
					got = pass(s)
				}
				if want == nil {
					want = got
				}
				if !slices.EqualFunc(got, want, func(a, b float32) bool { return a == b || a != a && b != b }) {
					t.Fatalf("program %d of %d ops, %s, turn %d:\n%v\nwant\n%v", seed, p.ops, spec, turn, got, want)
				}
			}
			d.Close()
		}
	}
}
