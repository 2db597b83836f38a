package paired

import (
	"math"
	"slices"
)

// Median of xs; NaN for none. xs is not changed.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return s[m-1] + (s[m]-s[m-1])/2
}

// Quantile is the smallest of xs that is not below a fraction q of them, from 0 to 1; NaN for none.
// xs is not changed.
func Quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	at := int(math.Ceil(q*float64(len(xs)))) - 1
	return slices.Sorted(slices.Values(xs))[min(max(at, 0), len(xs)-1)]
}

// Minimum of xs; NaN for none.
func Minimum(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return slices.Min(xs)
}

// An Estimate is a median with its 95 % interval.
type Estimate struct{ Mid, Lo, Hi float64 }

// LeastPairs is the number of pairs that an interval of 95 % needs; with fewer the whole range
// covers less.
const LeastPairs = 6

// Ratio estimates the median of num[i]/den[i]. The interval is between order statistics and needs
// no assumption about the distribution: the number of pairs below the true median is binomial with
// p = 1/2. With fewer than LeastPairs no such interval reaches 95 %, and the whole range is
// returned.
func Ratio(num, den []float64) Estimate {
	n := min(len(num), len(den))
	if n == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN()}
	}
	r := make([]float64, n)
	for i := range r {
		r[i] = num[i] / den[i]
	}
	slices.Sort(r)
	k := cut(n)
	return Estimate{Median(r), r[k], r[n-1-k]}
}

// cut is the largest k such that at most 2.5 % of binomial(n, 1/2) is below k+1 successes: that
// many values may be left out at either end.
func cut(n int) int {
	p := math.Pow(0.5, float64(n)) // probability of exactly i successes
	sum := 0.0
	for i := 0; i <= n/2; i++ {
		sum += p
		if sum > 0.025 {
			return max(i-1, 0)
		}
		p *= float64(n-i) / float64(i+1)
	}
	return 0
}
