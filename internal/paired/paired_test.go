package paired

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	cases := []struct {
		xs   []float64
		want float64
	}{
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{7}, 7},
	}
	for _, c := range cases {
		if got := Median(c.xs); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.xs, got, c.want)
		}
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Minimum(nil)) {
		t.Error("no values must have no median and no minimum")
	}
}

// TestCut compares with the table of the sign test at 5 %, two-sided.
func TestCut(t *testing.T) {
	for n, want := range map[int]int{1: 0, 5: 0, 6: 0, 8: 0, 9: 1, 11: 1, 12: 2, 15: 3, 20: 5, 30: 9} {
		if got := cut(n); got != want {
			t.Errorf("cut(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestLeastPairs: the whole range of n pairs is on one side of the median in two of 2^n cases.
func TestLeastPairs(t *testing.T) {
	if p := math.Pow(0.5, LeastPairs-1); p > 0.05 || 2*p <= 0.05 {
		t.Errorf("%d pairs miss in %v of cases", LeastPairs, p)
	}
}

func TestRatio(t *testing.T) {
	num := []float64{2, 4, 6, 8, 10, 12, 14, 16, 18, 200}
	den := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	got := Ratio(num, den)
	if got.Mid != 2 || got.Lo != 2 || got.Hi != 2 {
		t.Errorf("got %v; one bad pair of ten must not move the estimate", got)
	}
	got = Ratio([]float64{1, 3}, []float64{1, 1})
	if got.Mid != 2 || got.Lo != 1 || got.Hi != 3 {
		t.Errorf("two pairs: got %v, want the whole range", got)
	}
	if !math.IsNaN(Ratio(nil, nil).Mid) {
		t.Error("no pairs must have no ratio")
	}
}

func TestQuantile(t *testing.T) {
	xs := make([]float64, 200)
	for i := range xs {
		xs[i] = float64((i*77)%200 + 1) // 1 to 200 in disorder
	}
	for _, c := range []struct{ q, want float64 }{{0, 1}, {0.5, 100}, {0.99, 198}, {0.995, 199}, {1, 200}} {
		if got := Quantile(xs, c.q); got != c.want {
			t.Errorf("the %v quantile is %v, want %v", c.q, got, c.want)
		}
	}
	if got := Quantile(xs[:1], 0.99); got != xs[0] {
		t.Errorf("of one number %v", got)
	}
	if got := Quantile(nil, 0.5); got == got {
		t.Errorf("of none %v", got)
	}
}
