package poly

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func points(rng *rand.Rand, n, variables int) (list [][]int) {
	for range n {
		x := make([]int, variables)
		for i := range x {
			x[i] = 2 + rng.IntN(200)
		}
		list = append(list, x)
	}
	return list
}

// TestFit: a random polynomial is found from its values, and other values are rejected.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		variables, degree := 1+rng.IntN(4), 1+rng.IntN(3)
		f := NewFitter(points(rng, Needs(variables, degree)+3, variables), degree)
		if f == nil {
			continue // two points may be the same
		}
		var want Poly
		for _, exp := range f.terms {
			if rng.IntN(3) == 0 {
				want = append(want, Term{rng.Int64N(2000) - 1000, exp})
			}
		}
		values := make([]int64, len(f.points))
		for i, x := range f.points {
			values[i], _ = want.At(x)
		}
		got, ok := f.Fit(values)
		if !ok {
			t.Fatalf("%v is not found", want)
		}
		for _, x := range points(rng, 5, variables) {
			a, _ := want.At(x)
			if b, ok := got.At(x); !ok || a != b {
				t.Fatalf("%v at %v is %d, %v is %d", want, x, a, got, b)
			}
		}
		values[rng.IntN(len(values))]++
		if p, ok := f.Fit(values); ok {
			t.Fatalf("%v is found for what is none", p)
		}
	}
}

// TestFitHalves: a quotient is no polynomial with whole coefficients, although (n+1)/2 is one with
// fractional coefficients at odd numbers.
func TestFitHalves(t *testing.T) {
	f := NewFitter([][]int{{3}, {5}, {7}, {9}, {11}, {101}}, 3)
	var halves, squares []int64
	for _, x := range f.points {
		n := int64(x[0])
		halves, squares = append(halves, (n+1)/2), append(squares, n*n)
	}
	if p, ok := f.Fit(halves); ok {
		t.Errorf("halves are %v", p)
	}
	if _, ok := f.Fit(squares); !ok {
		t.Error("squares are none")
	}
	if NewFitter([][]int{{3}, {3}, {7}, {9}}, 3) != nil {
		t.Error("one point twice tells two")
	}
}

// TestOverflow: a value outside int64 is reported, in agreement with exact arithmetic.
func TestOverflow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		edge := func() int64 {
			return []int64{0, 1, -1, 2, math.MinInt64, math.MaxInt64, rng.Int64(), -rng.Int64N(1 << 33)}[rng.IntN(8)]
		}
		x := []int{int(edge()), int(edge())}
		p := Poly{{edge(), []uint8{1, 0}}, {edge(), []uint8{0, 1}}, {edge(), []uint8{0, 0}}}
		sum, fits := new(big.Int), true
		for i, term := range p {
			v := big.NewInt(term.Coef)
			if i < 2 {
				v.Mul(v, big.NewInt(int64(x[i])))
			}
			fits = fits && v.IsInt64() && sum.Add(sum, v).IsInt64()
		}
		got, ok := p.At(x)
		if ok != fits || ok && got != sum.Int64() {
			t.Fatalf("%v at %v: %d, %v; exactly %v", p, x, got, ok, sum)
		}
	}
}
